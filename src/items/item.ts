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
            'the key, usually a string or an integer, as the first member; or, in a row whose key is `_id`, a field of the document, of any type',
        }),
      ),
      _id: Type.Optional(
        Type.Unsafe<string | number>({
          type: KEY_TYPES,
          description:
            'the key, as the first member, of a document that has a field `id` of its own (which `fields` may omit)',
        }),
      ),
      category: Type.Optional(Type.Unknown({ description: 'a string' })),
      price: Type.Optional(Type.Unknown({ description: 'a finite number' })),
    },
    {
      additionalProperties: true,
      anyOf: [{ required: ['_id'] }, { required: ['id'], properties: { id: { type: KEY_TYPES } } }],
      description:
        'an item with all its fields or the requested ones; the first member, `id` or `_id`, is its key',
    },
  ),
);
