import { KEY, type Identity } from '../../bookmark.ts';
import type { Index } from '../../indexes.ts';
import type { Database } from '../tables.ts';

/** An index of a resource, as it is stored. */
export interface IndexRecord {
  /** Its number in the keys of its entries. Never used again. */
  readonly number: number;
  readonly paths: readonly string[];
  /** The rows up to this key (in hexadecimal) have their entries; null: all rows have. */
  readonly builtTo: string | null;
  /** Why no plan may use it, as the end of a sentence. It stays so: rows no longer have entries. */
  readonly spoilt?: string;
}

/** A resource, as it is stored. */
export interface ResourceRecord {
  /** Its number in the keys of its rows. */
  readonly number: number;
  readonly name: string;
  readonly collection: string;
  /** Another one after the rows were removed. Absent in files of earlier versions until then. */
  readonly identity?: Identity;
  readonly indexes: readonly IndexRecord[];
}

/** Only the index of the key can name a row alone. */
export const BY_KEY: Index = { name: '_id_', keys: [{ path: KEY, sign: 1 }], isUnique: true };

/** An index as plans see it. The key of a row is the last part of every entry. */
export function indexOf({ paths, builtTo, spoilt }: IndexRecord): Index {
  const refused = spoilt ?? (builtTo === null ? undefined : 'it is still being built');
  return {
    name: nameOf(paths),
    keys: [...paths, KEY].map((path) => ({ path, sign: 1 })),
    isUnique: false,
    ...(refused !== undefined && { refused }),
  };
}

/** Whether rows still lack entries in an index that is not unusable. */
export function isInBuilding({ builtTo, spoilt }: IndexRecord): boolean {
  return builtTo !== null && spoilt === undefined;
}

/** The identity of a resource's rows. */
export function identityOf({ identity, number }: ResourceRecord): Identity {
  return identity ?? number.toString(16).padStart(32, '0');
}

/** As MongoDB names an index by default. */
export function nameOf(paths: readonly string[]): string {
  return [...paths, KEY].map((path) => `${path}_1`).join('_');
}

/** The resources that the file has, by the names of their collections. */
export class Resources {
  readonly #meta: Database;
  /** The record of each collection as it was read last, with its bytes. */
  readonly #known = new Map<string, { readonly bytes: Uint8Array; readonly record: ResourceRecord }>();

  constructor(meta: Database) {
    this.#meta = meta;
  }

  names(): readonly string[] {
    return (this.#json(NAMES_KEY) ?? []) as string[];
  }

  /** Null when the file has no such collection. */
  record(collection: string): ResourceRecord | null {
    const bytes = this.#meta.getBinary(keyOf(collection));
    if (!bytes) return null;
    const known = this.#known.get(collection);
    if (known && Buffer.compare(known.bytes, bytes) === 0) return known.record;
    const record = JSON.parse(Buffer.from(bytes).toString()) as ResourceRecord;
    this.#known.set(collection, { bytes: Buffer.from(bytes), record });
    return record;
  }

  /** In a transaction: stores a record, which may be new. */
  put(record: ResourceRecord): void {
    const names = this.names();
    if (!names.includes(record.collection)) this.#putJson(NAMES_KEY, [...names, record.collection]);
    this.#putJson(keyOf(record.collection), record);
  }

  /** In a transaction: a number for the keys of rows that was never used before. */
  takeNumber(): number {
    const number = Math.max(Number(this.#json(NUMBER_KEY) ?? 0), this.names().length) + 1;
    this.#putJson(NUMBER_KEY, number);
    return number;
  }

  /** Beginnings of keys, in hexadecimal. Nothing leads to their rows and entries, which are to be removed. */
  waste(): readonly string[] {
    return (this.#json(WASTE_KEY) ?? []) as string[];
  }

  /** In a transaction. */
  putWaste(prefixes: readonly string[]): void {
    this.#putJson(WASTE_KEY, prefixes);
  }

  #json(key: Uint8Array): unknown {
    const bytes = this.#meta.getBinary(key);
    return bytes && JSON.parse(Buffer.from(bytes).toString());
  }

  #putJson(key: Uint8Array, value: unknown): void {
    this.#meta.putSync(key, Buffer.from(JSON.stringify(value)));
  }
}

const NAMES_KEY = Buffer.from('resources');
const NUMBER_KEY = Buffer.from('number of resources');
const WASTE_KEY = Buffer.from('waste of resources');

function keyOf(collection: string): Uint8Array {
  return Buffer.from(`resource ${collection}`);
}
