import { BSON_TYPE } from '../../bson-types.ts';
import { ITEMS, type ChangeLog } from '../feed/log.ts';
import { FieldPlaces } from '../fields.ts';
import { FIELDS, keyRow, LARGEST_ROW, LONGEST_STRING } from '../row.ts';
import type { Tables } from '../tables.ts';
import { COUNT_KEY, countBytes, INDEXES, itemCount } from '../write.ts';
import { writeCommonKey } from './common-keys.ts';
import { RowKeys } from './row-keys.ts';
import type { LoadTarget } from './load.ts';

/** The places of the names in FIELDS. */
const [ID, CATEGORY, PRICE] = [0, 1, 2] as const;
/** A BSON string: four bytes of length, the text, NUL. */
const STRING_FRAME = 5;

/** The items, as the set that a load fills. */
export function itemsTarget(tables: Tables, log: ChangeLog): LoadTarget {
  const writer = new ItemKeyWriter();
  return {
    rows: tables.items,
    indexes: INDEXES.map((index) => tables[index]),
    isUsable: () => true,
    conflict: 'an item with its _id exists',
    count: () => itemCount(tables.meta),
    keyed: (document, keys) => {
      if (writer.write(document, keys)) return null;
      const row = keyRow(document);
      if (typeof row === 'string') return row;
      keys.begin(row.id);
      for (const index of INDEXES) keys.addEntry(...row.partsOf(index));
      return null;
    },
    begin: () => {
      tables.meta.putSync(COUNT_KEY, countBytes(0));
      log.raiseFloor(ITEMS);
    },
    complete: (rows) => {
      tables.meta.putSync(COUNT_KEY, countBytes(rows));
    },
    clear: () => {
      for (const table of [tables.items, ...INDEXES.map((index) => tables[index])]) table.clearSync();
      return false;
    },
  };
}

/** Writes the keys of most items without an object for each. */
class ItemKeyWriter {
  readonly #places = new FieldPlaces(FIELDS);
  /** The keys of category and price. */
  readonly #values = new Uint8Array(2 * (2 * LONGEST_STRING));

  /** False for an item that keyRow is needed for: it has values of rare types, or is refused. */
  write(document: Uint8Array, keys: RowKeys): boolean {
    const places = this.#places;
    if (document.length > LARGEST_ROW || !places.find(document) || !this.#isCommon(document)) return false;
    const values = this.#values;
    const idEnd = this.#key(document, ID, keys.bytes, 0);
    const categoryEnd = this.#key(document, CATEGORY, values, 0);
    const priceEnd = categoryEnd < 0 ? -1 : this.#key(document, PRICE, values, categoryEnd);
    if (idEnd < 0 || priceEnd < 0) return false;
    keys.beginWritten(idEnd);
    keys.addEntryOf(values, categoryEnd, priceEnd);
    keys.addEntryOf(values, 0, categoryEnd);
    keys.addEntryOf(values, 0, priceEnd);
    return true;
  }

  #isCommon(document: Uint8Array): boolean {
    const { types, starts, ends } = this.#places;
    const [id, category, price] = [types[ID], types[CATEGORY], types[PRICE]];
    if (id === BSON_TYPE.double || category !== BSON_TYPE.string) return false;
    if (price !== BSON_TYPE.double && price !== BSON_TYPE.int32) return false;
    if (price === BSON_TYPE.double && !isFiniteDouble(document, starts[PRICE] ?? 0)) return false;
    const isLong = (at: number) => (ends[at] ?? 0) - (starts[at] ?? 0) - STRING_FRAME > LONGEST_STRING;
    return !isLong(CATEGORY) && !(id === BSON_TYPE.string && isLong(ID));
  }

  #key(document: Uint8Array, field: number, target: Uint8Array, at: number): number {
    const { types, starts, ends } = this.#places;
    return writeCommonKey(types[field] ?? 0, document, starts[field] ?? 0, ends[field] ?? 0, target, at);
  }
}

/** Infinities and NaN have an exponent of ones. */
function isFiniteDouble(document: Uint8Array, at: number): boolean {
  return ((document[at + 7] ?? 0) & 0x7f) !== 0x7f || ((document[at + 6] ?? 0) & 0xf0) !== 0xf0;
}
