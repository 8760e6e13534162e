import { ObjectId, UUID, type Document } from '../../../src/store/values/bson.ts';

/**
 * A row of a small catalogue that has everything that makes paging hard: many ties, few categories, ids of
 * several types.
 */
export interface Row {
  /** The id in JSON. */
  readonly id: string | number;
  readonly category: string;
  readonly price: number;
  readonly document: Document;
}

export const CATEGORIES = ['books', 'garden', 'music', 'ü & ö', 'toys'];

/**
 * `count` rows. With `ids` = `mixed`, the ids cycle through integer, string, UUID and ObjectId. Otherwise all
 * are strings.
 */
export function catalogue(count: number, ids: 'mixed' | 'string' = 'mixed'): Row[] {
  return Array.from({ length: count }, (_, i) => {
    const { stored, shown } = ids === 'mixed' ? mixedId(i) : { stored: stringId(i), shown: stringId(i) };
    const category = CATEGORIES[(i * 7) % CATEGORIES.length] ?? '';
    const price = ((i * 13) % 40) / 4; // 40 prices: every price has many ties
    return { id: shown, category, price, document: { _id: stored, category, price, n: i } };
  });
}

function stringId(i: number): string {
  return `row-${String((i * 7919) % 100_003).padStart(6, '0')}`;
}

function mixedId(i: number): { stored: unknown; shown: string | number } {
  const digits = String((i * 7919) % 100_003).padStart(24, '0');
  switch (i % 4) {
    case 0:
      return { stored: i - 500, shown: i - 500 };
    case 1:
      return { stored: stringId(i), shown: stringId(i) };
    case 2: {
      const uuid = `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(12)}`;
      return { stored: new UUID(uuid), shown: uuid };
    }
    default:
      return { stored: new ObjectId(digits), shown: digits };
  }
}

/** The rank of an id's type in BSON's order: number < string < UUID < ObjectId. */
function rank(id: string | number): number {
  if (typeof id === 'number') return 0;
  return id.startsWith('row-') ? 1 : id.includes('-') ? 2 : 3;
}

function compareIds(a: string | number, b: string | number): number {
  const byType = rank(a) - rank(b);
  if (byType !== 0) return byType;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * The ids that a walk must return, in the order of `sort`, of one category when it is given. The sort is
 * independent of the store.
 */
export function expectedIds(rows: readonly Row[], sort: string, category?: string): (string | number)[] {
  const sign = sort.endsWith('desc') ? -1 : 1;
  const byPrice = sort.startsWith('price');
  return rows
    .filter((row) => category === undefined || row.category === category)
    .toSorted((a, b) => sign * ((byPrice ? a.price - b.price : 0) || compareIds(a.id, b.id)))
    .map((row) => row.id);
}
