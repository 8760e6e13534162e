import { BSON_TYPE } from '../../bson-types.ts';
import { KEY } from '../../bookmark.ts';
import type { ChangeLog } from '../feed/log.ts';
import { FieldPlaces } from '../fields.ts';
import type { Key } from '../../keys.ts';
import { writeCommonKey } from '../load/common-keys.ts';
import type { LoadTarget } from '../load/load.ts';
import type { RowKeys } from '../load/row-keys.ts';
import type { Tables } from '../tables.ts';
import { keyOfAny, NULL_KEY } from '../../value-keys.ts';
import { entriesPrefix, keyAt, keyRow, LARGEST_ROW, NO_IDS, rowsPrefix } from './keyed.ts';
import { LONGEST_KEY } from './longest-key.ts';
import { newIdentity, removeSome } from './clear.ts';
import { identityOf, type IndexRecord, type ResourceRecord, type Resources } from './record.ts';
import { CONFLICT, countOf, recordOf, setCount, spoil, spoiltBy } from './write.ts';

/** Rows, and entries, that one transaction removes. */
const REMOVED_AT_ONCE = 10_000;

/** A resource, as the set that a load fills. */
export function resourceTarget(
  tables: Tables,
  resources: Resources,
  collection: string,
  log: ChangeLog,
): LoadTarget {
  const stored = (): ResourceRecord => recordOf(resources, collection);
  let record: ResourceRecord = { number: 0, name: '', collection, indexes: [] };
  let writer: RowKeyWriter | null = null;
  return {
    rows: tables.rows,
    prefix: 4,
    get indexes() {
      return record.indexes.map(() => tables.entries);
    },
    isUsable: (index) => record.indexes[index]?.spoilt === undefined,
    conflict: CONFLICT,
    count: () => countOf(tables, stored()),
    keyed: (document, keys) => {
      writer ??= new RowKeyWriter(record);
      if (writer.write(document, keys)) return null;
      const row = keyRow(document, record);
      if (typeof row === 'string') return row;
      keys.begin(row.key);
      for (const entry of row.entries) keys.addEntry(...(entry ? [entry] : []));
      if (row.spoils.length > 0) [record, writer] = [spoiltBy(record, row.spoils), null];
      return null;
    },
    // A load makes the entries of all rows, so no index is in building, and rows that are replaced spoil none.
    begin: () => {
      const before = stored();
      const indexes = before.indexes.map(({ number, paths }): IndexRecord => ({
        number,
        paths,
        builtTo: null,
      }));
      // A stream of the rows that are replaced must not go on in those that come.
      const identity = countOf(tables, before) > 0 ? newIdentity() : identityOf(before);
      [record, writer] = [{ ...before, identity, indexes }, null];
      resources.put(record);
      setCount(tables, record, 0);
      log.raiseFloor(record.number);
    },
    complete: (rows) => {
      const spoils = record.indexes.flatMap(({ spoilt }, index) =>
        spoilt === undefined ? [] : [{ index, reason: spoilt }],
      );
      if (rows > 0) spoil(resources, stored(), spoils);
      setCount(tables, stored(), rows);
    },
    clear: () => {
      const prefix = rowsPrefix(stored());
      return (
        removeSome(tables, 'rows', prefix, REMOVED_AT_ONCE) ||
        removeSome(tables, 'entries', prefix, REMOVED_AT_ONCE)
      );
    },
  };
}

/** Writes the keys of most rows without an object for each. */
class RowKeyWriter {
  readonly #prefix: Key;
  readonly #indexes: readonly { readonly prefix: Key; readonly paths: readonly number[] | null }[];
  readonly #places: FieldPlaces;
  /** The key comes first. */
  readonly #paths: readonly string[];
  /** For each path, where its first field is in #places. */
  readonly #placeOf: readonly number[];
  readonly #values = new Uint8Array(2 * LONGEST_KEY);

  constructor(record: ResourceRecord) {
    this.#prefix = rowsPrefix(record);
    this.#paths = [...new Set([KEY, ...record.indexes.flatMap(({ paths }) => paths)])];
    // Several paths may begin with one field, which then has one place.
    const fieldOf = (path: string) => path.split('.', 1)[0] ?? path;
    const names = [...new Set(this.#paths.map(fieldOf))];
    this.#places = new FieldPlaces(names);
    this.#placeOf = this.#paths.map((path) => names.indexOf(fieldOf(path)));
    this.#indexes = record.indexes.map((index) => ({
      prefix: entriesPrefix(record, index),
      paths: index.spoilt === undefined ? index.paths.map((path) => this.#paths.indexOf(path)) : null,
    }));
  }

  /** False for a row that keyRow is needed for: it is refused, or makes an index unusable. */
  write(document: Uint8Array, keys: RowKeys): boolean {
    if (document.length > LARGEST_ROW || !this.#places.find(document)) return false;
    const type = this.#places.types[0] ?? 0;
    if (type === 0 || NO_IDS.includes(type)) return false;
    keys.bytes.set(this.#prefix);
    const idEnd = this.#key(document, 0, keys.bytes, this.#prefix.length);
    if (idEnd < 0 || idEnd > LONGEST_KEY) return false;
    keys.beginWritten(idEnd);
    const longest = LONGEST_KEY - (idEnd - this.#prefix.length);
    for (const { prefix, paths } of this.#indexes) {
      if (!paths) {
        keys.addEntry();
        continue;
      }
      this.#values.set(prefix);
      let end = prefix.length;
      for (const path of paths) {
        end = this.#key(document, path, this.#values, end);
        if (end < 0 || end > longest) return false;
      }
      keys.addEntryOf(this.#values, 0, end);
    }
    return true;
  }

  /** Writes the key of the value at a path. Returns where it ends; -1 for an array. */
  #key(document: Uint8Array, index: number, target: Uint8Array, at: number): number {
    const { types, starts, ends } = this.#places;
    const place = this.#placeOf[index] ?? 0;
    const [type = 0, from = 0, to = 0] = [types[place], starts[place], ends[place]];
    if (type === 0) return write(NULL_KEY, target, at);
    if (type === BSON_TYPE.array) return -1;
    const path = this.#paths[index] ?? '';
    if (path.includes('.')) {
      const key = keyAt(document, path);
      return typeof key === 'string' ? -1 : write(key, target, at);
    }
    const end = writeCommonKey(type, document, from, to, target, at);
    return end >= 0 ? end : write(keyOfAny({ type, bytes: document.subarray(from, to) }), target, at);
  }
}

function write(key: Key, target: Uint8Array, at: number): number {
  for (let n = 0; n < key.length; n++) target[at + n] = key[n] ?? 0;
  return at + key.length;
}
