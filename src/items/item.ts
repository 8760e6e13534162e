import { named, Type } from '../schema.ts';

const KEY_TYPES = ['string', 'number', 'boolean', 'object', 'null'];

/** All fields pass through unchanged, so the schema says nothing more about them. */
export const ITEM = named(
  'Item',
  Type.Object(
    {
      id: Type.Optional(
        Type.Unknown({
          description:
            'the key, mostly a text or an integer, and then the first member; beside `_id` a field of the document, of any type',
        }),
      ),
      _id: Type.Optional(
        Type.Unsafe<string | number>({
          type: KEY_TYPES,
          description:
            'the key, then the first member, of a document with a field `id` of its own (which `fields` may leave out)',
        }),
      ),
      category: Type.Optional(Type.Unknown({ description: 'a text' })),
      price: Type.Optional(Type.Unknown({ description: 'a finite number' })),
    },
    {
      additionalProperties: true,
      anyOf: [{ required: ['_id'] }, { required: ['id'], properties: { id: { type: KEY_TYPES } } }],
      description:
        'an item, with all fields it has in the store or those asked for; its key is the first member, `id` or `_id`',
    },
  ),
);
