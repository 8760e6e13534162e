import { BSON_TYPE } from '../../values/bson-types.ts';
import { KEY } from '../../bookmark.ts';
import type { BsonElement } from '../../values/bson-elements.ts';
import { elementsIn, fieldsOf } from '../../values/fields.ts';
import { keyAt } from '../../values/has-values.ts';
import { KeyWriter } from '../../values/key-writer.ts';
import type { Key } from '../../values/keys.ts';
import type { RowCheck } from '../../values/row-check.ts';
import { keyOfAny, NULL_KEY } from '../../values/order.ts';
import type { IndexRecord } from './collections.ts';

/** MongoDB's limit, so that both stores accept the same rows. Bytes. */
const LARGEST_ROW = 16 * 1024 * 1024;
/** Types that MongoDB refuses as the key of a row, too. */
const NO_IDS: readonly number[] = [BSON_TYPE.array, BSON_TYPE.undefined, BSON_TYPE.regularExpression];

export interface KeyedRow {
  readonly document: Uint8Array;
  readonly key: Key;
  /** The key in each index. Null: the index cannot have the row, or is unusable. */
  readonly entries: readonly (Key | null)[];
  /** The indexes that the row makes unusable, with the reason. */
  readonly unusable: readonly { readonly index: number; readonly reason: string }[];
}

/** A field of an index. */
interface IndexedField {
  readonly path: string;
  /** Its place in the names that are read at once. Null: it lies further down. */
  readonly element: number | null;
}

/** What the indexes of a collection, and its check, read of a row. */
interface IndexedFields {
  readonly check: RowCheck | undefined;
  /** Where the fields of the check are among the names. */
  readonly checked: readonly number[];
  /** `_id` and the top-level fields, each once, in UTF-8. */
  readonly names: readonly Uint8Array[];
  /** The fields of each index. Null: it is unusable. */
  readonly indexes: readonly (readonly IndexedField[] | null)[];
}

/** By the indexes of a record, which never change. */
const INDEXED = new WeakMap<readonly IndexRecord[], IndexedFields>();
const WRITER = new KeyWriter();
const NONE: KeyedRow['unusable'] = [];

/** A row with its keys, or why the store, or the check, refuses it. `indexes`: of a record, whose array is made once. */
export function keyRow(
  document: Uint8Array,
  indexes: readonly IndexRecord[],
  check?: RowCheck,
): KeyedRow | string {
  WRITER.begin();
  const ends: number[] = [];
  const unusable = writeKeys(document, indexes, WRITER, ends, check);
  if (typeof unusable === 'string') return unusable;
  const keys = WRITER.from(0);
  const [keyEnd = 0] = ends;
  const entries = ends.slice(1).map((end, n) => {
    const from = ends[n] ?? 0;
    return end > from ? keys.subarray(from, end) : null;
  });
  return { document, key: keys.subarray(0, keyEnd), entries, unusable };
}

/**
 * Writes the keys of a row, its own and that in each index, and adds where each ends. One that is empty is null: see KeyedRow.
 * Returns the indexes that the row makes unusable, or why the store refuses it.
 */
export function writeKeys(
  document: Uint8Array,
  indexes: readonly IndexRecord[],
  writer: KeyWriter,
  ends: number[],
  check?: RowCheck,
): KeyedRow['unusable'] | string {
  if (document.length > LARGEST_ROW) return `a row has at most ${LARGEST_ROW} bytes, got ${document.length}`;
  let indexed = INDEXED.get(indexes);
  if (indexed?.check !== check || !indexed) INDEXED.set(indexes, (indexed = indexedIn(indexes, check)));
  const elements = elementsIn(document, indexed.names);
  if (typeof elements === 'string') return elements;
  const checked = indexed.checked.map((place) => elements[place]);
  const refused = check?.refusalOf(document, checked) ?? null;
  if (refused !== null) return refused;
  const [id] = elements;
  if (!id) return '_id is missing';
  if (NO_IDS.includes(id.type)) return `_id is of BSON type ${id.type}, which no key can have`;
  const start = writer.at;
  writer.value(document, id);
  const keyEnd = writer.at;
  ends.push(keyEnd);
  let unusable = NONE;
  let index = -1;
  for (const fields of indexed.indexes) {
    index++;
    const from = writer.at;
    const array = fields && writeParts(document, elements, fields, writer);
    if (fields && array === null) writer.again(start, keyEnd);
    else writer.rewind(from);
    ends.push(writer.at);
    if (array === null) continue;
    const hex = Buffer.from(writer.between(start, keyEnd)).toString('hex');
    unusable = [
      ...unusable,
      { index, reason: `a row has an array at ${array} (its _id has the key ${hex})` },
    ];
  }
  return unusable;
}

/** Writes the keys of an index's fields. Returns the path at which there is an array instead, which no key can have. */
function writeParts(
  document: Uint8Array,
  elements: readonly (BsonElement | undefined)[],
  fields: readonly IndexedField[],
  writer: KeyWriter,
): string | null {
  for (const { path, element: at } of fields) {
    const element = at === null ? undefined : elements[at];
    if (element?.type === BSON_TYPE.array) return path;
    if (element) {
      writer.value(document, element);
      continue;
    }
    const key = at === null ? keyAt(document, path) : NULL_KEY;
    if (typeof key === 'string') return key;
    writer.put(key);
  }
  return null;
}

function indexedIn(indexes: readonly IndexRecord[], check: RowCheck | undefined): IndexedFields {
  const names = [KEY];
  const placeOf = (name: string): number => {
    if (!names.includes(name)) names.push(name);
    return names.indexOf(name);
  };
  const fieldOf = (path: string): IndexedField => ({
    path,
    element: path.includes('.') ? null : placeOf(path),
  });
  const fields = indexes.map(({ paths, unusable }) => (unusable === undefined ? paths.map(fieldOf) : null));
  const checked = (check?.names ?? []).map((name) => placeOf(Buffer.from(name).toString()));
  return { check, checked, names: names.map((name) => Buffer.from(name)), indexes: fields };
}

/** The key of the row with an id. Null when no row can have it. */
export function keyOfRow(id: Uint8Array): Key | null {
  const values = fieldsOf(id, [KEY]);
  return typeof values === 'string' || !values[0] ? null : keyOfAny(values[0]);
}
