import { randomBytes } from 'node:crypto';
import { KEY, type Identity } from '../bookmark.ts';
import type { Index } from '../indexes.ts';
import { bytesIn, type Connection, type SqlRow } from './connection.ts';
import { DamagedRowError, documentIn, storedRow } from './checked-rows.ts';
import { columnOf, indexSql, meta, setMeta, tablesSql } from './layout.ts';
import type { LoadMark } from './load-mark.ts';

export interface IndexRecord {
  /** The number of its column. Never used again in the set. */
  readonly number: number;
  readonly paths: readonly string[];
  /** Rows up to this key (in hexadecimal) have their keys in the index; null: it is whole. */
  readonly builtTo: string | null;
  /** Why no plan may use it, as the end of a sentence. It stays so: rows no longer have keys in it. */
  readonly unusable?: string;
}

export interface SetRecord {
  /** The name in the file. */
  readonly name: string;
  /** The number of its tables. Another one after the rows were removed. */
  readonly number: number;
  /** The name of the resource, for messages. */
  readonly label: string;
  /** Another one after rows were removed. */
  readonly identity: Identity;
  readonly indexes: readonly IndexRecord[];
  /** Whether the rows lie in the order of their keys. */
  readonly isInOrder?: boolean | undefined;
  /** Whether a row was large: a batch then looks at their sizes first. */
  readonly hasLargeRows?: boolean | undefined;
  /** Who is filling the set. No one else sees or writes its rows meanwhile. */
  readonly loading?: LoadMark | undefined;
  /** The log has rows as they were from behind this number on. `usedAt`: when a reader last asked for that. */
  readonly before?: { readonly since: number; readonly usedAt: number } | undefined;
}

/** What a set without rows has not got. */
export const NEW = { isInOrder: true, hasLargeRows: undefined, loading: undefined, before: undefined };

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

/** Whether rows still lack their keys in an index that is not unusable. */
export function isInBuilding({ builtTo, unusable }: IndexRecord): boolean {
  return builtTo !== null && unusable === undefined;
}

/** As MongoDB names an index by default. */
export function nameOf(paths: readonly string[]): string {
  return [...paths, KEY].map((path) => `${path}_1`).join('_');
}

/** A number that no version of the sets had. */
function newVersion(): number {
  return Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
}

/** A record that is written in the same transaction. */
const NOTHING = new Uint8Array(0);

export function newIdentity(): Identity {
  return randomBytes(16).toString('hex');
}

/** Throws DamagedRowError when the record is not the one that was written for this name. */
function recordIn(row: SqlRow): SetRecord {
  const record = JSON.parse(
    Buffer.from(documentIn(bytesIn(row, 'record') ?? NOTHING)).toString(),
  ) as SetRecord;
  if (record.name === row.name) return record;
  throw new DamagedRowError(`a set has the record of ${record.name}`);
}

/** The sets of the file. All calls are made in a look or a transaction. */
export class Sets {
  readonly #connection: Connection;
  /** The sets that were read since the version changed. */
  readonly #known = new Map<string, SetRecord>();
  #version: string | number | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Null when the file has no such set. */
  find(name: string): SetRecord | null {
    const version = meta(this.#connection, 'sets');
    if (version !== this.#version) this.#known.clear();
    this.#version = version;
    const known = this.#known.get(name);
    if (known) return known;
    const found = this.#connection.get('select name, record from sets where name = ?', name);
    if (!found) {
      if (!this.names().includes(name)) return null;
      throw new DamagedRowError(`the record of the set ${name} is not found`);
    }
    const record = recordIn(found);
    this.#known.set(name, record);
    return record;
  }

  get(name: string): SetRecord {
    const record = this.find(name);
    if (!record) throw new Error(`the embedded store has no set ${name}`);
    return record;
  }

  /** Throws DamagedRowError when these are not those that were made: the tables of a lost one must not be removed. */
  names(): readonly string[] {
    const rows = this.#connection.all('select name, record from sets order by name');
    const names = rows.map((row) => recordIn(row).name);
    const made = meta(this.#connection, 'made');
    if (made === null || made === names.length) return names;
    throw new DamagedRowError(`the file has the records of ${names.length} sets, and ${made} were made`);
  }

  /** Makes a set. Its tables have their indexes. */
  create(record: Omit<SetRecord, 'number' | 'identity'>): SetRecord {
    const identity = record.name === 'items' ? '0'.repeat(32) : newIdentity(); // the catalogue's cursors fit
    const made = { ...record, number: this.takeNumber(), identity };
    const before = this.names().length;
    this.#connection.run('insert into sets values (?, 0, ?, 0, 0, 0)', record.name, NOTHING);
    setMeta(this.#connection, 'made', before + 1);
    this.put(made);
    this.makeTables(made);
    return made;
  }

  put(record: SetRecord): void {
    const text = storedRow(Buffer.from(JSON.stringify(record)));
    this.#connection.run(
      'update sets set record = ?, number = ? where name = ?',
      text,
      record.number,
      record.name,
    );
    setMeta(this.#connection, 'sets', newVersion());
  }

  /** What is known of sets was undone. */
  forget(): void {
    this.#version = null;
  }

  makeTables({ number, indexes }: SetRecord): void {
    const columns = ['k', ...indexes.map((one) => columnOf(one.number))];
    this.#connection.exec(
      tablesSql(number, indexes) + columns.map((column) => indexSql(number, column)).join(''),
    );
  }

  /** Gives a set the number of new tables, and leaves the old ones to be removed. The set is then empty. */
  renumber(record: SetRecord, number: number): SetRecord {
    const renumbered = { ...record, number };
    this.put(renumbered);
    this.#connection.run('update sets set rows = 0, floor = 0 where name = ?', record.name);
    return renumbered;
  }

  /** A number for tables that was never used before. */
  takeNumber(): number {
    const number = Number(meta(this.#connection, 'number')) + 1;
    setMeta(this.#connection, 'number', number);
    return number;
  }

  /** The numbers of tables to be removed: nothing leads to them any more. */
  discarded(): readonly number[] {
    const used = this.names().flatMap((name) => [this.get(name).number, this.get(name).loading?.sorted]);
    const tables = this.#connection.all("select name from sqlite_schema where type = 'table'");
    return tables
      .map(({ name }) => Number(/^s(\d+)$/.exec(String(name))?.[1]))
      .filter((number) => !Number.isNaN(number) && !used.includes(number));
  }

  rows(name: string): number {
    return Number(this.#connection.get('select rows from sets where name = ?', name)?.rows ?? 0);
  }

  addRows(name: string, rows: number): void {
    if (rows !== 0) this.#connection.run('update sets set rows = rows + ? where name = ?', rows, name);
  }
}
