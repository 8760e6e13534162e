/**
 * Reads whole sets of rows from a sluice server, and follows their changes, in browsers and in Node. What it gives is
 * proved by the checkpoints of the server.
 *
 *     import { rows, follow } from 'https://HOST/clients/sluice.mjs';
 *     for await (const row of rows('https://HOST/items?category=Ideal', { key })) console.log(row);
 */
import { headOf, readChunks, type ChunkOfEdition } from './edition.ts';
import type { EditionHead } from '../../src/base/edition/head.ts';
import { completed, exportBytes, exportUrls } from '../../src/pull/export-file.ts';
import { REMOVAL_BEGINNING } from '../../src/pull/lines.ts';
import { BEGINNING } from '../../src/pull/proof.ts';
import { provedRows, type ProvingOptions } from '../../src/pull/proved-rows.ts';
import { Interruption, REAL_CLOCK, Refusal } from '../../src/pull/retry.ts';
import { answerByFetch, contentByFetch, CorsRefused, PAGE } from './fetch-content.ts';
import { Sha256 } from './sha256.ts';

interface Options {
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

interface FollowOptions extends Options {
  /** The cursor of an earlier batch, or `now`. Without it, all rows come first. */
  readonly since?: string;
}

/** A row whose fields nobody has named. */
type AnyRow = Readonly<Record<string, unknown>>;

/** A row as it is now, or the removal of one. */
interface Change<Row> {
  /** The set that it is of, where several are followed. */
  readonly resource?: string;
  readonly id: unknown;
  /** null: the row is gone, or no longer matches the filter. */
  readonly row: Row | null;
}

/** Changes that belong together. A copy that applies them by id, in their order, is at the place of `cursor`. */
interface Changes<Row> {
  readonly changes: readonly Change<Row>[];
  readonly cursor: string;
  /** Whether such a copy equals the set now. */
  readonly upToDate: boolean;
}

/** Names of errors by the status of the answer, and what to do. */
const NAMES: Readonly<Record<number, readonly [name: string, remedy: string]>> = {
  400: ['BadRequest', ''],
  401: ['Unauthorized', 'Give an API key as the option `key`.'],
  403: ['Forbidden', ''],
  404: ['NotFound', 'The URL is that of a resource, such as /items.'],
  410: [
    'Gone',
    'Drop what you have of this set and begin again from its first row: call rows or follow without `since`.',
  ],
};

/**
 * Why an iteration ended early. `name`: `BadRequest`, `Unauthorized`, `Forbidden`, `NotFound`, `Gone` (of a set or of
 * changes that the server no longer has), `CorsRefused`, `Refused` (anything else that another attempt cannot mend), or
 * `Interrupted` (given up after `retryFor`).
 */
export class SluiceError extends Error {
  override readonly name: string;
  /** The status of the answer, if it was that. */
  readonly status: number | undefined;

  constructor(cause: Interruption | Refusal) {
    const { status, message } = cause;
    const known = cause instanceof Refusal ? NAMES[status ?? 0] : undefined;
    const [name, remedy] = known ?? [cause.name, ''];
    super(remedy === '' ? message : `${message.replace(/\.?$/, '.')} ${remedy}`, { cause });
    this.name = cause instanceof CorsRefused ? 'CorsRefused' : name;
    this.status = status;
  }
}

/**
 * The rows of a resource, each once, in the order of the URL's `sort`. `url`: that of a resource or of its stream, with
 * filters. A row comes when a count and a CRC-32 of the server have proved it. A connection that is cut goes on behind
 * the last proved row. An iteration that ends without an error has given the whole set. The server waits for a loop
 * that is slower than it.
 */
export async function* rows<Row = AnyRow>(
  url: string | URL,
  options: Options = {},
): AsyncGenerator<Row, void, undefined> {
  const { parse = JSON.parse } = options;
  for await (const { lines } of batches(addressOf(url, 'stream'), options, { follow: false }))
    for (const line of lines) yield parse(line) as Row;
}

/**
 * All rows of a resource, and then their changes, for ever: batches of changes, each with the cursor behind it. With
 * `since` it goes on behind a batch, or with what changes from now on. A batch may be empty. `url` may also be that of
 * changes of several resources (`/changes?resources=orders,customers`). It then needs `since`, because no rows come first.
 */
export async function* follow<Row = AnyRow>(
  url: string | URL,
  options: FollowOptions = {},
): AsyncGenerator<Changes<Row>, void, undefined> {
  const { since, parse = JSON.parse } = options;
  const isNew = since === 'now';
  const from = since === undefined || isNew ? BEGINNING : { ...BEGINNING, cursor: since };
  const isOfSeveral = /\/changes\?(.*&)?resources=/.test(String(url));
  if (isOfSeveral && since === undefined)
    throw new TypeError("the changes of several resources need since: 'now', or a cursor");
  const address = addressOf(url, isNew || isOfSeveral ? 'changes' : 'stream');
  for await (const { lines, cursor, upToDate } of batches(address, options, { follow: true, from }))
    yield { changes: lines.map((line) => changeIn<Row>(line, parse)), cursor: cursor ?? '', upToDate };
}

/**
 * The bytes of an export's file, once the server has written it. `url`: that of the export or of its file. A connection
 * that is cut goes on where it was. Where the file lies in an object store, that gets no key. The last piece comes when the
 * SHA-256 is that of the export: an iteration that ends without an error has given the whole file.
 */
export async function* download(
  url: string | URL,
  options: Omit<Options, 'parse'> = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const given = new URL(url, PAGE?.href);
  const urls = exportUrls(given);
  if (!urls || given.username !== '' || given.password !== '')
    throw new TypeError(`${given.href} is not the URL of an export, without a password`);
  const asking = { ...requestsOf(options), getAnswer: answerByFetch };
  try {
    const file = await completed(urls.status, asking);
    const hash = new Sha256();
    let last: Uint8Array | null = null;
    for await (const chunk of exportBytes(urls.file, file, 0, asking)) {
      if (last) yield last;
      hash.update(chunk);
      last = chunk;
    }
    if (hash.digest() !== file.sha256)
      throw new Refusal(
        `the bytes that came are not the file of the export, whose SHA-256 is ${file.sha256}`,
      );
    if (last) yield last;
  } catch (error) {
    throw told(error);
  }
}

/** What an edition is, as far as readers need it. */
type Head = Pick<
  EditionHead,
  'edition' | 'resource' | 'at' | 'rows' | 'bytes' | 'crc32' | 'changes' | 'formats'
>;

/** An edition of a resource: all its rows at one time, in chunks that never change. */
interface Edition<Row> extends AsyncIterable<Row> {
  /** What the edition is. */
  head(): Promise<Head>;
  /** The rows as NDJSON, chunk by chunk, each proved by its SHA-256. An iteration that ends without an error has given all. */
  chunks(): AsyncGenerator<ChunkOfEdition, void, undefined>;
}

/**
 * An edition. `url`: `/items/edition` of a server, or `edition.json` of a folder or a bucket; with a name behind it, that one.
 * A loop over it gives the rows, each once, in the order of their ids. A row comes when the SHA-256 of its chunk has proved
 * it. A loop that ends without an error has given the edition that its name proves.
 */
export function edition<Row = AnyRow>(url: string | URL, options: Options = {}): Edition<Row> {
  const { parse = JSON.parse } = options;
  const given = new URL(url, PAGE?.href);
  if (given.username !== '' || given.password !== '') throw new TypeError(`${given.href} has a password`);
  let known: Promise<EditionHead> | null = null;
  const head = () =>
    (known ??= headOf(given, requestsOf(options)).catch((error: unknown) => {
      known = null;
      throw told(error);
    }));
  async function* chunks(): AsyncGenerator<ChunkOfEdition, void, undefined> {
    const found = await head();
    try {
      yield* readChunks(given, found, requestsOf(options));
    } catch (error) {
      throw told(error);
    }
  }
  return {
    head,
    chunks,
    async *[Symbol.asyncIterator]() {
      for await (const { bytes } of chunks()) {
        const lines = new TextDecoder().decode(bytes).split('\n');
        for (const line of lines.slice(0, -1)) yield parse(line) as Row;
      }
    },
  };
}

interface Batch {
  readonly lines: readonly string[];
  readonly cursor: string | null;
  readonly upToDate: boolean;
}

/** The lines of rows and removals, in proved pieces. Rejects with SluiceError. */
async function* batches(
  url: URL,
  options: Options,
  what: Partial<ProvingOptions>,
): AsyncGenerator<Batch, void, undefined> {
  const text = new HeldText();
  const steps = provedRows(url, {
    from: BEGINNING,
    firstRow: null,
    follow: false,
    compression: 'none',
    ...requestsOf(options),
    ...what,
  });
  try {
    for await (const step of steps) {
      if (step.kind === 'rows') text.add(step.bytes);
      else if (step.kind === 'void') text.take();
      else if (step.kind === 'restart') throw new Refusal(step.reason, { status: 410 });
      else yield { lines: text.take(), cursor: step.place.cursor, upToDate: step.upToDate };
    }
  } catch (error) {
    throw told(error);
  }
}

/** How requests are sent and repeated. */
function requestsOf({
  key = null,
  signal,
  retryFor = 300,
  timeout = 60,
  onRetry = () => undefined,
}: Options) {
  return {
    clock: REAL_CLOCK,
    key,
    signal: signal ?? new AbortController().signal,
    retryForMs: retryFor * 1000,
    idleMs: timeout * 1000,
    onInterrupted: (failure: Interruption, waitMs: number) => onRetry(new SluiceError(failure), waitMs),
    getContent: contentByFetch(),
  };
}

function told(error: unknown): unknown {
  return error instanceof Refusal || error instanceof Interruption ? new SluiceError(error) : error;
}

/** Text that came in pieces and is not proved yet. */
class HeldText {
  #decoder = new TextDecoder();
  #text = '';

  add(bytes: Uint8Array): void {
    this.#text += this.#decoder.decode(bytes, { stream: true });
  }

  /** Its lines. The next piece is the beginning of a line. */
  take(): readonly string[] {
    const lines = this.#text.split('\n').slice(0, -1);
    this.#text = '';
    this.#decoder = new TextDecoder();
    return lines;
  }
}

function changeIn<Row>(line: string, parse: (json: string) => unknown): Change<Row> {
  const value = parse(line) as AnyRow;
  const [, resource, own = ''] = /^\{(?:"resource":"([^"]+)",)?(.*)/s.exec(line) ?? [];
  const isRemoved = own.startsWith(REMOVAL_BEGINNING.slice(1));
  const row = (isRemoved ? value.removed : resource === undefined ? value : value.row) as AnyRow;
  // The key comes first, as `_id` when the row has a field `id` of its own.
  const isNamed = /^("(removed|row)":\{)?"_id":/.test(own);
  const change = { id: isNamed ? row._id : row.id, row: isRemoved ? null : (row as Row) };
  return resource === undefined ? change : { resource, ...change };
}

/** The URL of the stream or of the changes of a resource. Browsers read it relative to their page. */
function addressOf(url: string | URL, last: 'stream' | 'changes'): URL {
  const given = new URL(url, PAGE?.href);
  if (!/^https?:$/.test(given.protocol) || given.username !== '' || given.password !== '')
    throw new TypeError(`${given.href} is not the http or https URL of a resource, without a password`);
  given.pathname = `${given.pathname.replace(/\/(stream|changes)?$/, '')}/${last}`;
  for (const name of ['format', 'checkpoints', 'follow', 'since']) given.searchParams.delete(name);
  return given;
}
