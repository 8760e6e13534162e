import type { ChunkEntry, DeltaEntry, EditionHead, IndexEntry } from '../../base/edition/head.ts';
import { chunkFile, deltaFile, indexFile } from '../../base/edition/names.ts';
import type { GetAnswer } from '../export-file.ts';
import {
  Backoff,
  failureOfAnswer,
  Interruption,
  jsonIn,
  Mismatch,
  Refusal,
  type BackoffOptions,
} from '../retry.ts';
import { urlOfEdition, type EditionUrls } from './edition-url.ts';
import { isParquet, joined, textOf } from './file-bytes.ts';
import { headIn, indexIn, isOfEntry } from './read-head.ts';

export interface EditionOptions extends BackoffOptions {
  /** An API key, for the server alone. null for none. */
  readonly key: string | null;
  readonly getAnswer: GetAnswer;
  /** Undoes a coding. `most`: the bytes that may come out. Rejects with Mismatch when the bytes are not in it, or are cut. */
  readonly decompress: (bytes: Uint8Array, coding: 'gz' | 'br', most: number) => Promise<Uint8Array>;
  /** In hexadecimal digits. */
  readonly sha256: (bytes: Uint8Array) => Promise<string> | string;
  /** The formats of chunks that `decompress` can undo. */
  readonly formats: readonly string[];
}

/** A file that the server does not have. An edition that is no longer kept loses its files. */
export class NotThere extends Refusal {}

/** How often a file is asked for that is whole and not what its name says. A proxy may keep a wrong one. */
const MOST_WRONG = 3;
const MIB = 1024 * 1024;
const LONGEST_HEAD = MIB;
/** An index file names 1,000 chunks by their ids, each three times. */
const LONGEST_INDEX = 64 * MIB;
const LONGEST_PROBLEM = 64 * 1024;
/** After so many bytes, the next failure counts as the first one. */
const STEP_BYTES = 64 * 1024;
const LINK = 307;
const GZIP_MAGIC = 0x1f;

/** A file as it came: its bytes, and whether they are all that the answer announced. */
interface FetchedFile {
  readonly bytes: Uint8Array;
  readonly isWhole: boolean;
}

/** The files of a resource's editions, each proved by its name. */
export class EditionFiles {
  readonly #urls: EditionUrls;
  readonly #options: EditionOptions;
  /** The bytes of all answers. */
  received = 0;

  constructor(urls: EditionUrls, options: EditionOptions) {
    this.#urls = urls;
    this.#options = options;
  }

  /** The head at the URL that was given. */
  async head(): Promise<EditionHead> {
    return this.#head(this.#urls.head);
  }

  async newest(): Promise<EditionHead> {
    return this.#head(this.#urls.newest);
  }

  /** An edition by its name. null: it is no longer kept. */
  async kept(name: string): Promise<EditionHead | null> {
    try {
      const head = await this.#head(urlOfEdition(this.#urls, name));
      return head.edition === name ? head : null;
    } catch (error) {
      if (error instanceof NotThere) return null;
      throw error;
    }
  }

  /** The chunks of an edition in their order. Throws Refusal at the end when they are not what the head says. */
  async *chunks(head: EditionHead): AsyncGenerator<ChunkEntry, void, undefined> {
    for (const entry of head.index) yield* this.#below(head, entry);
  }

  /** The bytes of an index file as they are. */
  async index(head: EditionHead, entry: IndexEntry, signal?: AbortSignal): Promise<Uint8Array> {
    const url = this.#fileUrl(head, indexFile(entry.name));
    return this.#proved(url, LONGEST_INDEX, signal, async ({ bytes }) =>
      (await this.#options.sha256(bytes)) === entry.name ? bytes : null,
    );
  }

  /** The rows of a chunk. */
  async chunk(head: EditionHead, entry: ChunkEntry, signal?: AbortSignal): Promise<Uint8Array> {
    return (await this.chunkIn(head, entry, this.#format(head), signal)).rows;
  }

  /** The rows of a chunk, and its file in a format. */
  async chunkIn(
    head: EditionHead,
    entry: ChunkEntry,
    format: string,
    signal?: AbortSignal,
  ): Promise<{ readonly file: Uint8Array; readonly rows: Uint8Array }> {
    const { name, bytes } = entry;
    const url = this.#fileUrl(head, chunkFile(name, format));
    // A coding never makes more of rows than a little: another length is another file.
    return this.#proved(url, 2 * bytes + MIB, signal, async (fetched) => {
      const rows = await this.#decoded(fetched, format, bytes);
      if (rows.length !== bytes || (await this.#options.sha256(rows)) !== name) return null;
      return { file: fetched.bytes, rows };
    });
  }

  /** A chunk in a format whose content its name does not prove: only its length is known. */
  async parquet(head: EditionHead, entry: ChunkEntry, signal?: AbortSignal): Promise<Uint8Array> {
    const size = entry.sizes.parquet ?? 0;
    const url = this.#fileUrl(head, chunkFile(entry.name, 'parquet', head.schema));
    return this.#proved(url, size, signal, ({ bytes }) =>
      Promise.resolve(bytes.length === size && isParquet(bytes) ? bytes : null),
    );
  }

  /** The lines of a delta. */
  async delta(head: EditionHead, entry: DeltaEntry, signal?: AbortSignal): Promise<Uint8Array> {
    return (await this.deltaIn(head, entry, signal)).lines;
  }

  async deltaIn(
    head: EditionHead,
    { name, bytes }: DeltaEntry,
    signal?: AbortSignal,
  ): Promise<{ readonly file: Uint8Array; readonly lines: Uint8Array }> {
    const url = this.#fileUrl(head, deltaFile(name));
    return this.#proved(url, bytes, signal, async (fetched) => {
      const lines = await this.#decoded(fetched, 'ndjson.gz', MOST_DELTA);
      return (await this.#options.sha256(lines)) === name ? { file: fetched.bytes, lines } : null;
    });
  }

  async *#below(head: EditionHead, entry: IndexEntry): AsyncGenerator<ChunkEntry, void, undefined> {
    const text = new TextDecoder().decode(await this.index(head, entry));
    const file = indexIn(jsonIn(text), entry.level);
    if (!file || !isOfEntry(file, entry))
      throw new Refusal(`the index file ${entry.name} is not what its entry says`);
    if ('chunks' in file) yield* file.chunks;
    else for (const below of file.index) yield* this.#below(head, below);
  }

  #format({ formats }: EditionHead): string {
    const found = formats.find((format) => this.#options.formats.includes(format));
    if (found !== undefined) return found;
    throw new Refusal(
      `the edition has no chunks of a format that this client reads, only ${formats.join(', ')}`,
    );
  }

  #fileUrl({ files }: EditionHead, file: string): URL {
    const folder = URL.canParse(files, this.#urls.base.href) ? new URL(files, this.#urls.base) : null;
    if (!folder || !/^https?:$/.test(folder.protocol) || folder.username + folder.password !== '')
      throw new Refusal('the head says no place of its files');
    return new URL(file, folder);
  }

  async #head(url: URL): Promise<EditionHead> {
    return this.#proved(url, LONGEST_HEAD, undefined, (fetched) =>
      Promise.resolve(headIn(jsonIn(new TextDecoder().decode(fetched.bytes)))),
    );
  }

  /**
   * The rows or lines of a file. What came may be decoded already: a proxy that calls the file's coding a content coding has
   * browsers undo it.
   */
  async #decoded({ bytes, isWhole }: FetchedFile, format: string, most: number): Promise<Uint8Array> {
    const coding = /\.(gz|br)$/.exec(format)?.[1] as 'gz' | 'br' | undefined;
    if (coding === undefined || (coding === 'gz' && bytes[0] !== GZIP_MAGIC)) return bytes;
    try {
      return await this.#options.decompress(bytes, coding, most);
    } catch (error) {
      if (error instanceof Mismatch && isWhole) return NOTHING; // it is not what its name says
      throw error;
    }
  }

  /**
   * What `prove` makes of a file, which is fetched until it is whole. `prove`: null says that it is another file. Rejects with
   * Refusal when it is that again and again.
   */
  async #proved<Result>(
    url: URL,
    most: number,
    signal: AbortSignal | undefined,
    prove: (fetched: FetchedFile) => Promise<Result | null>,
  ): Promise<Result> {
    const options = this.#options;
    const backoff = new Backoff(
      signal ? { ...options, signal: AbortSignal.any([options.signal, signal]) } : options,
    );
    for (let wrong = 0; ;) {
      try {
        const uncached = wrong > 0 ? { 'cache-control': 'no-cache' } : {};
        const fetched = await this.#fetch(url, most, uncached, backoff);
        const result = await prove(fetched);
        if (result !== null) return result;
        wrong++;
        const what = fetched.isWhole ? 'is not what its name says' : 'was cut';
        if (fetched.isWhole && wrong >= MOST_WRONG)
          throw new Refusal(`${url.href} ${what}, and was fetched ${MOST_WRONG} times`);
        throw new Mismatch(`${url.href} ${what}`);
      } catch (error) {
        await backoff.after(error);
      }
    }
  }

  async #fetch(
    url: URL,
    most: number,
    headers: Readonly<Record<string, string>>,
    backoff: Backoff,
  ): Promise<FetchedFile> {
    const pieces: Uint8Array[] = [];
    let announced = NaN;
    let length = 0;
    const content = backoff.content(async (signal) => {
      const answer = await this.#answer(url, headers, signal);
      announced = Number(answer.header('content-length') ?? NaN);
      return answer.content;
    });
    let counted = 0;
    for await (const piece of content) {
      // The buffer of a piece may be used again.
      pieces.push(piece.slice());
      length += piece.length;
      this.received += piece.length;
      if (length > most) break;
      if (length - counted >= STEP_BYTES) {
        backoff.reset();
        counted = length;
      }
    }
    return { bytes: joined(pieces, length), isWhole: length > most || !(length < announced) };
  }

  async #answer(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const { key, getAnswer } = this.#options;
    const plain = { ...headers, 'accept-encoding': 'identity' };
    const isOwn = url.origin === this.#urls.base.origin;
    const own = isOwn && key !== null ? { ...plain, authorization: `Bearer ${key}` } : plain;
    const answer = await getAnswer(url, own, signal);
    if (answer.status === 200 || answer.isRedirected) return answer;
    if (answer.status === LINK && isOwn) {
      const link = answer.header('location') ?? '';
      await textOf(answer.content, 0); // nothing of it is left open
      const other = URL.canParse(link, url.href) ? new URL(link, url) : null;
      if (!other || !/^https?:$/.test(other.protocol))
        throw new Refusal('the server answered with a link that is none');
      const led = await getAnswer(other, plain, signal); // the object store gets no key
      if (led.status === 200) return led;
      await textOf(led.content, 0);
      throw new Interruption(`the object store answered ${led.status}`, { status: led.status });
    }
    const failure = failureOfAnswer(
      answer.status,
      answer.header,
      await textOf(answer.content, LONGEST_PROBLEM),
    );
    if (answer.status === 404) throw new NotThere(`${url.href}: ${failure.message}`, { status: 404 });
    throw failure;
  }
}

const NOTHING = new Uint8Array();
/** The most bytes of the lines of a delta: they are held at once. */
const MOST_DELTA = 1024 * MIB;
