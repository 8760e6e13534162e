import { randomBytes } from 'node:crypto';
import { collectionReplaced, storeUnfit } from '../../../base/errors.ts';
import { KEY, type Identity } from '../../bookmark.ts';
import type { Index } from '../../indexes.ts';
import { isRunning, type Holder } from '../../writes/holder.ts';
import { compareKeys } from '../../values/keys.ts';
import type { RowCheck } from '../../values/row-check.ts';
import { bytesIn, type Connection } from './connection.ts';
import { DamagedRowError, documentIn, storedRow } from './checked-rows.ts';
import { columnsOf, indexSql, meta, setMeta, tablesSql } from './layout.ts';

/** A row above this size makes its collection one with large rows. Bytes. */
export const LARGE_BYTES = 64 * 1024;

/** What the names of resources begin with among the collections. */
export const RESOURCE = 'resource ';

export interface CollectionShape {
  /** The name in the file. */
  readonly name: string;
  /** The name for messages. */
  readonly label: string;
  readonly indexes: readonly (readonly string[])[];
  readonly hasChanges: boolean;
  /** A collection that is made for it is not seen before its first import has ended. */
  readonly isUnfilled?: boolean;
  /** What its rows must have, beyond what every collection asks for. */
  readonly check?: RowCheck;
}

export interface IndexRecord {
  /** The number of its column. Never used again in the collection. */
  readonly number: number;
  readonly paths: readonly string[];
  /** Rows up to this key (in hexadecimal) have their keys in the index; null: it is whole. */
  readonly builtTo: string | null;
  /** Why no plan may use it, as the end of a sentence. It stays so: rows no longer have keys in it. */
  readonly unusable?: string;
}

/** The import of a process into a collection, as its record has it. */
export interface ImportRecord {
  readonly id: string;
  readonly holder: Holder;
  /** Milliseconds since 1970. */
  readonly until: number;
  /** Present: it fills tables that nothing else leads to. */
  readonly side?: SideTables;
}

export interface SideTables {
  /** The numbers of the tables. The last one becomes that of the collection. */
  readonly numbers: readonly number[];
  /** The rows that the collection had when the import began. */
  readonly rows: number;
  /** The number of the collection's tables then, and of the last change in their log: what came later stays. */
  readonly of: number;
  readonly after: number;
}

export interface CollectionRecord extends Pick<CollectionShape, 'name' | 'label'> {
  /** The number of its tables. Another one after the rows were removed. */
  readonly number: number;
  /** Another one after rows were removed. */
  readonly identity: Identity;
  readonly indexes: readonly IndexRecord[];
  /** The highest number of an index that was removed. */
  readonly lastIndex?: number | undefined;
  /** The numbers of indexes that were removed and still take space. */
  readonly removing?: readonly number[] | undefined;
  readonly isInOrder?: boolean | undefined;
  /** Its first import has not come to its end: nobody sees the collection. */
  readonly isUnfilled?: boolean | undefined;
  /** Whether a row was large: a batch then looks at their sizes first. */
  readonly hasLargeRows?: boolean | undefined;
  /** Imports under way, and those whose process has ended. */
  readonly imports?: readonly ImportRecord[] | undefined;
  /** The log has rows as they were from behind this number on. `usedAt`: when a reader last asked for that. */
  readonly before?: { readonly since: number; readonly usedAt: number } | undefined;
}

/** What a collection without rows has not got. */
export const NEW = { isInOrder: true, hasLargeRows: undefined, before: undefined, removing: undefined };

/** An index as plans see it. The key of a row is the last part of every entry. */
export function indexOf({ paths, builtTo, unusable }: IndexRecord): Index {
  const refused = unusable ?? (builtTo === null ? undefined : 'it is still being built');
  return {
    name: nameOf(paths),
    keys: [...paths, KEY].map((path) => ({ path, sign: 1 })),
    isUnique: false,
    ...(refused !== undefined && { refused }),
  };
}

export function isUnderWay({ holder, until }: ImportRecord, now: number): boolean {
  return isRunning(holder) ?? now < until;
}

/** Whether rows still lack their keys in an index that is not unusable. */
export function isInBuilding({ builtTo, unusable }: IndexRecord): boolean {
  return builtTo !== null && unusable === undefined;
}

/** Whether an index has all rows, so that plans may use it. */
export function isWhole({ builtTo, unusable }: IndexRecord): boolean {
  return builtTo === null && unusable === undefined;
}

/** As MongoDB names an index by default. */
export function nameOf(paths: readonly string[]): string {
  return [...paths, KEY].map((path) => `${path}_1`).join('_');
}

export function newIdentity(): Identity {
  return randomBytes(16).toString('hex');
}

/** Throws DamagedRowError when the record is not the one that was written for this name. */
function recordIn(stored: Uint8Array, name: unknown): CollectionRecord {
  const record = JSON.parse(Buffer.from(documentIn(stored)).toString()) as CollectionRecord;
  if (record.name === name) return record;
  throw new DamagedRowError(`a set has the record of ${record.name}`);
}

/** A record that is written in the same transaction. */
const NOTHING = new Uint8Array(0);

/** The collections of the file. All calls are made in a look or a transaction. */
export class Collections {
  readonly #connection: Connection;
  /** The records that were read, by name, with their bytes: other bytes are a new record. */
  readonly #known = new Map<string, { readonly stored: Uint8Array; readonly record: CollectionRecord }>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Null when the file has no such collection. The same record until it is written again. */
  find(name: string): CollectionRecord | null {
    const found = this.#connection.get('select record from sets where name = ?', name);
    if (!found) {
      if (!this.names().includes(name)) return null;
      throw new DamagedRowError(`the record of the set ${name} is not found`);
    }
    const stored = bytesIn(found, 'record') ?? NOTHING;
    const known = this.#known.get(name);
    if (known && compareKeys(known.stored, stored) === 0) return known.record;
    const record = recordIn(stored, name);
    this.#known.set(name, { stored, record });
    return record;
  }

  /** `identity`: of the collection that the work began in. Throws AppError when another process has dropped the collection. */
  get(name: string, identity?: Identity): CollectionRecord {
    const record = this.find(name);
    if (record) return record;
    throw identity === undefined
      ? storeUnfit('The collection was dropped or renamed.', new Error(`the embedded store has no ${name}`))
      : collectionReplaced();
  }

  /** Throws DamagedRowError when these are not those that were made: the tables of a lost one must not be removed. */
  names(): readonly string[] {
    const rows = this.#connection.all('select name, record from sets order by name');
    const names = rows.map((row) => recordIn(bytesIn(row, 'record') ?? NOTHING, row.name).name);
    const made = meta(this.#connection, 'made');
    if (made === null || made === names.length) return names;
    throw new DamagedRowError(`the file has the records of ${names.length} sets, and ${made} were made`);
  }

  /** Makes a collection. Its tables have their indexes. */
  create(record: Omit<CollectionRecord, 'number' | 'identity'>): CollectionRecord {
    const made = { ...record, number: this.takeNumber(), identity: newIdentity() };
    const before = this.names().length;
    this.#connection.run('insert into sets values (?, ?, 0, 0)', record.name, NOTHING);
    setMeta(this.#connection, 'made', before + 1);
    this.put(made);
    this.makeTables(made);
    return made;
  }

  put(record: CollectionRecord): void {
    const stored = storedRow(Buffer.from(JSON.stringify(record)));
    this.#connection.run('update sets set record = ? where name = ?', stored, record.name);
  }

  /** Removes a collection, and leaves its tables to be removed. */
  remove(name: string): void {
    const before = this.names().length;
    this.#connection.run('delete from sets where name = ?', name);
    setMeta(this.#connection, 'made', before - 1);
  }

  rename(collection: CollectionRecord, to: Pick<CollectionRecord, 'name' | 'label'>): void {
    this.#connection.run('update sets set name = ? where name = ?', to.name, collection.name);
    this.put({ ...collection, ...to });
  }

  makeTables({ number, indexes }: CollectionRecord): void {
    const made = ['k', ...columnsOf(indexes)].map((column) => indexSql(number, column));
    this.#connection.exec(tablesSql(number, indexes) + made.join(''));
  }

  /** Gives a collection the number of new tables, and leaves the old ones to be removed. The collection is then empty. */
  renumber(record: CollectionRecord, number: number): CollectionRecord {
    const renumbered = { ...record, number };
    this.put(renumbered);
    this.#connection.run('update sets set rows = 0, floor = 0 where name = ?', record.name);
    return renumbered;
  }

  /** Removes all rows of a collection, which gets new tables. */
  empty(collection: CollectionRecord): void {
    const indexes = collection.indexes.map(({ number, paths }) => ({ number, paths, builtTo: null }));
    this.makeTables(this.renumber({ ...collection, ...NEW, indexes }, this.takeNumber()));
  }

  takeNumber(): number {
    const number = Number(meta(this.#connection, 'number')) + 1;
    setMeta(this.#connection, 'number', number);
    return number;
  }

  /** The collections with imports whose process has ended, without them. */
  withoutEnded(now: number): readonly CollectionRecord[] {
    return this.names()
      .map((name) => this.get(name))
      .filter(({ imports }) => imports?.some((one) => !isUnderWay(one, now)))
      .map((collection) => ({
        ...collection,
        imports: collection.imports?.filter((one) => isUnderWay(one, now)),
      }));
  }

  /** The numbers of tables to be removed: nothing leads to them any more. */
  discarded(): readonly number[] {
    const used = this.names().flatMap((name) => {
      const { number, imports = [] } = this.get(name);
      return [number, ...imports.flatMap(({ side }) => side?.numbers ?? [])];
    });
    const tables = this.#connection.all("select name from sqlite_schema where type = 'table'");
    return tables
      .map(({ name }) => Number(/^s(\d+)$/.exec(String(name))?.[1]))
      .filter((number) => !Number.isNaN(number) && !used.includes(number));
  }

  rows(name: string): number {
    return Number(this.#connection.get('select rows from sets where name = ?', name)?.rows ?? 0);
  }

  /** Lets the collection be seen. */
  show(name: string): void {
    const collection = this.get(name);
    if (collection.isUnfilled === true) this.put({ ...collection, isUnfilled: undefined });
  }

  addRows(name: string, rows: number): void {
    if (rows !== 0) this.#connection.run('update sets set rows = rows + ? where name = ?', rows, name);
  }
}
