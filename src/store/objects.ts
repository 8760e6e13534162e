/**
 * Objects that the server writes whole and never changes, but for a few that it replaces whole. A path has segments of
 * letters, digits, `.`, `_`, `~` and `-` between slashes (see `isObjectPath`); for any other the methods reject with
 * TypeError. A folder is laid out so that a web server can serve it alone. Implementations: folder/objects.ts,
 * bucket/objects.ts. test/contracts/objects.contract.ts runs on both.
 *
 * Every method rejects with AppError `insufficient-storage` when there is no room or no permission to write, and with
 * `store-unavailable` when the storage cannot be reached.
 */
export interface ObjectStore {
  /**
   * Stores an object whole, in one step: a reader sees all of it, or what was there before. When this resolves it is
   * durable. `isNew`: only if there is none of this path. Resolves with whether it was stored.
   */
  put(path: string, bytes: Uint8Array, how?: { readonly isNew?: boolean }): Promise<boolean>;
  /** The bytes of an object. Null when there is none. For those that fit into memory. */
  get(path: string): Promise<Uint8Array | null>;
  /**
   * Yields the bytes of an object from `start`, inclusive, to `end`, exclusive, in pieces of about a megabyte at most.
   * Each is valid until the next one. Throws FileGoneError (files.ts) when bytes are missing.
   */
  read(path: string, start: number, end: number): AsyncIterable<Uint8Array>;
  /** The length of an object in bytes. Null when there is none. */
  size(path: string): Promise<number | null>;
  /** All objects whose path begins with a prefix, in any order. */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Removes an object. Does nothing when there is none. */
  remove(path: string): Promise<void>;
  /** Rejects with the AppError that an operation would meet now. */
  ping(): Promise<void>;
  /** Releases connections. */
  close(): void;
}

export interface StoredObject {
  readonly path: string;
  readonly bytes: number;
  /** When it was stored last, by the clock of the storage. Milliseconds. */
  readonly storedAt: number;
}

const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,200}$/;

/** Whether a path has the form that paths of objects have. */
export function isObjectPath(path: string): boolean {
  return path.split('/').every((segment) => SEGMENT.test(segment));
}
