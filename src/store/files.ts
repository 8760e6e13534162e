/**
 * Files that the server creates and serves. A name consists of lower-case letters, digits and one dot. For any other
 * name `size` returns null, and the other methods reject with TypeError. Implementations: directory.ts,
 * mongo/files.ts, bucket/files.ts. test/contracts/files.test.ts runs on all of them.
 *
 * - A file is unfinished until `finish`, and cannot be read before that.
 * - Every method rejects with AppError `insufficient-storage` when there is no room or no permission to write, and with
 *   `store-unavailable` when the storage cannot be reached.
 */
export interface FileStore {
  /** Creates an empty, unfinished file. Replaces a file of this name. A signal may end its writes early, with its reason. */
  create(name: string, signal?: AbortSignal): Promise<FileWriter>;
  /**
   * Yields the bytes of a finished file from `start`, inclusive, to `end`, exclusive, in pieces of about a megabyte at
   * most. Each is valid until the next one. Throws FileGoneError when bytes are missing. When the file is removed
   * during the read, the read either goes on to its end or throws this error.
   */
  read(name: string, start: number, end: number): AsyncIterable<Uint8Array>;
  /** The length of a finished file in bytes. Null when there is none. */
  size(name: string): Promise<number | null>;
  /** Removes a finished or unfinished file. Does nothing when there is none. */
  remove(name: string): Promise<void>;
  /** The names of all files that take room, finished or not. With `stem`, only those that have it before their dot. */
  names(stem?: string): Promise<readonly string[]>;
  /** Milliseconds between two calls of `names` for all files. Absent: a call costs nothing worth saving. */
  readonly listingMs?: number;
  /** Files lie in the database that answers requests, and to write them slows those. Absent: elsewhere. */
  readonly isInDatabase?: true;
  /**
   * A URL by which anybody may GET a finished file, or ranges of it, until its time is over. It is not known whether there
   * is such a file. Absent: clients reach the files through the server alone.
   */
  link?(name: string, options: LinkOptions): string;
  /** Rejects with the AppError that an operation would meet now. Absent: the store says it in its own `ping`. */
  ping?(): Promise<void>;
  /** Releases connections. Absent: there are none. */
  close?(): void;
}

interface LinkOptions {
  readonly seconds: number;
  /** Headers of the answer, in lower case: Content-Type, Content-Disposition and Cache-Control. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface FileWriter {
  /** Appends bytes. The caller may reuse the buffer once this resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** Finishes the file. When this resolves, the file is durable and has its final name. */
  finish(): Promise<void>;
  /** Releases the file. An unfinished file stays unfinished. May be called several times. */
  close(): Promise<void>;
}

/** The file does not exist, is shorter than it should be, or has other bytes. */
export class FileGoneError extends Error {
  constructor(name: string) {
    super(`the file ${name} is missing, incomplete or changed`);
    this.name = 'FileGoneError';
  }
}

/** Whether a name has the form that names of files have here. */
export function isFileName(name: string): boolean {
  return /^[a-z0-9]{1,64}\.[a-z0-9]{1,64}$/.test(name);
}
