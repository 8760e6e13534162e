/** The types of sluice.mjs: whole sets of rows from a sluice server, proved, and their changes. */

/** A row whose fields nobody has named. `sluice types URL` writes the types of those of a server. */
export type AnyRow = Readonly<Record<string, unknown>>;

export interface Options {
  /** An API key, sent as `Authorization: Bearer`. */
  readonly key?: string | null;
  /** Ends the iteration, which then rejects with the reason. */
  readonly signal?: AbortSignal;
  /** Gives up after waiting this long without another proved row. Seconds. */
  readonly retryFor?: number;
  /** A connection without data for this long is closed. Seconds. */
  readonly timeout?: number;
  /** Called with each failure after which the next attempt follows, and the milliseconds until then. */
  readonly onRetry?: (failure: Error, waitMs: number) => void;
  /** Reads a row's JSON. JSON.parse rounds integers of more than 53 bits. */
  readonly parse?: (json: string) => unknown;
}

export interface FollowOptions extends Options {
  /** The cursor of an earlier batch, or `now`. Without it, all rows come first. */
  readonly since?: string;
}

/** A row as it is now, or the removal of one. */
export interface Change<Row = AnyRow> {
  /** The set that it is of, where several are followed. */
  readonly resource?: string;
  readonly id: unknown;
  /** null: the row is gone, or no longer matches the filter. */
  readonly row: Row | null;
}

/** Changes that belong together. A copy that applies them by id, in their order, is at the place of `cursor`. */
export interface Changes<Row = AnyRow> {
  readonly changes: readonly Change<Row>[];
  readonly cursor: string;
  /** Whether such a copy equals the set now. */
  readonly upToDate: boolean;
}

/**
 * Why an iteration ended early. `name`: `BadRequest`, `Unauthorized`, `Forbidden`, `NotFound`, `Gone`, `CorsRefused`, `Refused`
 * or `Interrupted`.
 */
export class SluiceError extends Error {
  override readonly name: string;
  /** The status of the answer, if it was that. */
  readonly status: number | undefined;
}

/** The rows of a resource, each once, in the order of the URL's `sort`. One that ends without an error has given the whole set. */
export function rows<Row = AnyRow>(
  url: string | URL,
  options?: Options,
): AsyncGenerator<Row, void, undefined>;

/** All rows of a resource, and then their changes, for ever, in batches. */
export function follow<Row = AnyRow>(
  url: string | URL,
  options?: FollowOptions,
): AsyncGenerator<Changes<Row>, void, undefined>;

/**
 * The bytes of an export's file, once the server has written it. `url`: that of the export or of its file. An iteration that
 * ends without an error has given the whole file, whose SHA-256 is that of the export.
 */
export function download(
  url: string | URL,
  options?: Omit<Options, 'parse'>,
): AsyncGenerator<Uint8Array, void, undefined>;

/** What an edition is. */
export interface EditionHead {
  /** The SHA-256 over the names of its chunks, each with a line feed behind it. */
  readonly edition: string;
  readonly resource: string;
  /** When its rows were as they are here. */
  readonly at: string;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
  /** The cursor from which changes follow. */
  readonly changes: string;
  readonly formats: readonly string[];
}

/** Rows that follow one another, as NDJSON. */
export interface ChunkOfEdition {
  /** The SHA-256 of the bytes. */
  readonly name: string;
  readonly rows: number;
  readonly bytes: Uint8Array;
}

/** An edition of a resource: all its rows at one time, in chunks that never change. */
export interface Edition<Row = AnyRow> extends AsyncIterable<Row> {
  head(): Promise<EditionHead>;
  /** An iteration that ends without an error has given all rows of the edition. */
  chunks(): AsyncGenerator<ChunkOfEdition, void, undefined>;
}

/** An edition. `url`: `/items/edition` of a server, or `edition.json` of a folder or a bucket. A loop over it gives its rows. */
export function edition<Row = AnyRow>(url: string | URL, options?: Options): Edition<Row>;
