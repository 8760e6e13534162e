import { documented, parameter, paths, text, type Parameter } from '../input/parameter.ts';
import { named, Type } from '../base/schema.ts';
import { MAX_ID_BYTES } from './row/id.ts';
import type { Form, Order } from './query/form.ts';
import { readSort } from './query/grammar.ts';
import { ITEM_EXAMPLES } from './item-examples.ts';
import { isMisfit, readingsOf, type Kind } from './query/kinds.ts';

/** The kinds of the fields that queries of items ask for. */
export const ITEM_KINDS: ReadonlyMap<string, Kind> = new Map([
  ['category', 'string'],
  ['price', 'number'],
]);

const SORTS: readonly string[] = ['price_asc', 'price_desc', 'id_asc', 'id_desc'];

const sort = documented(
  parameter<Order>('sort', `one of ${SORTS.join(', ')}`, { type: 'string', enum: SORTS }, (given) =>
    SORTS.includes(given) ? (readSort(given) ?? undefined) : undefined,
  ),
  'The order of the rows. Rows of equal price are ordered by id in the same direction.',
  { fallback: 'id_asc' },
);
const fields = documented(
  paths('fields', 100, MAX_ID_BYTES),
  'Return only these fields, separated by commas. `a.b` is the member `b` of `a`, or of each element when `a` is an array. The key is always included.',
  { example: 'price,color' },
);
const category = documented(text('category', MAX_ID_BYTES), 'Return only items of this category.', {
  example: 'Ideal',
});
const minPrice = documented(
  bound('min_price'),
  'The lowest price, inclusive, compared with the digits that rows show. Requires a price sort, and makes `price_asc` the default.',
);
const maxPrice = documented(
  bound('max_price'),
  'The highest price, inclusive. The rules of `min_price` apply.',
);

/** A bound of prices, kept as its digits because a double would lose some of them. */
function bound(name: string): Parameter<string> {
  const expected = 'a number in JSON syntax, of at most 34 digits and from -9.9e+6144 to 9.9e+6144';
  return parameter(name, expected, { type: 'number' }, (digits) =>
    isMisfit(readingsOf(`dec:${digits}`)) ? undefined : digits,
  );
}

const KEY_TYPES = ['string', 'number', 'boolean', 'object', 'null'];

/** All fields pass through unchanged, so the schema says nothing more about them. */
const ITEM = named(
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

/** How items are asked: by parameters of their own, others are refused. */
export const ITEM_FORM = {
  parameters: [category, sort, minPrice, maxPrice, fields],
  sort,
  fields,
  closed: [
    { parameter: category, to: 'category', prefix: 'str:' },
    { parameter: minPrice, to: 'price.gte' },
    { parameter: maxPrice, to: 'price.lte' },
  ],
  columns: ['id', 'category', 'price'],
  docs: {
    tag: 'Items',
    noun: { one: 'item', many: 'items' },
    row: { name: 'Item', plural: 'items', schema: ITEM },
    ids: {
      list: 'listItems',
      stream: 'streamItems',
      changes: 'listItemChanges',
      partitions: 'listPartitions',
      values: 'listItemValues',
      get: 'getItem',
    },
    list: {
      summary: 'List items',
      description:
        'Returns a page of items. Give at most one of `cursor`, `offset` and `page`; each combines with filter and sort. A page by cursor costs the same at any depth.',
    },
    examples: ITEM_EXAMPLES,
  },
} satisfies Form;
