/**
 * Files that the server makes and hands out. Names are of lower-case letters, digits and one dot; whoever asks for another one
 * is told that there is none. Implementations: directory.ts, mongo/files.ts; test/files.contract.ts runs on each.
 *
 * - A file is unfinished until `finish`, and can be read all the same: by who goes on with it.
 * - Everything rejects with AppError `insufficient-storage` when there is no room, and `store-unavailable` when the place
 *   cannot be reached.
 */
export interface FileStore {
  /** A new file, empty and unfinished. What has this name is replaced. */
  create(name: string): Promise<FileWriter>;
  /**
   * Bytes of a file from `start` to `end`, exclusive, finished or not, in pieces of at most about a megabyte, as the caller
   * takes them; each is valid until the next one. FileGoneError when they are not there. A file that is removed meanwhile is
   * read to its end, or rejects so.
   */
  read(name: string, start: number, end: number): AsyncIterable<Uint8Array>;
  /** The length of a finished file; null when there is none. */
  size(name: string): Promise<number | null>;
  /** Removes a file, finished or not; nothing when there is none. */
  remove(name: string): Promise<void>;
  /** The names of all files there are, finished or not. */
  names(): Promise<readonly string[]>;
}

export interface FileWriter {
  /** Adds bytes, which may be used again once it resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when all that was written so far would survive the end of the process and of the machine; nothing once it is closed. */
  sync(): Promise<void>;
  /** The file is whole: it is durable and has its name when this resolves. */
  finish(): Promise<void>;
  /** Lets go of the file; one that is not finished stays unfinished. May be called several times. */
  close(): Promise<void>;
}

/** The file is not there, or not as long as it should be. */
export class FileGoneError extends Error {
  constructor(name: string) {
    super(`the file ${name} is not there as a whole`);
    this.name = 'FileGoneError';
  }
}

/** Whether a name is of the form that files here have. */
export function isFileName(name: string): boolean {
  return /^[a-z0-9]{1,64}\.[a-z0-9]{1,64}$/.test(name);
}
