import type { EditionHead } from '../../src/base/edition/head.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { EditionFiles, type EditionOptions } from '../../src/pull/edition/edition-files.ts';
import { EditionSum } from '../../src/pull/edition/edition-sum.ts';
import { editionUrls } from '../../src/pull/edition/edition-url.ts';
import { inOrder } from '../../src/pull/edition/in-order.ts';
import { Mismatch, Refusal } from '../../src/pull/retry.ts';
import { cachedByFetch } from './fetch-content.ts';
import { Sha256 } from './sha256.ts';

/** Rows that follow one another, as NDJSON. */
export interface ChunkOfEdition {
  /** The SHA-256 of the bytes. */
  readonly name: string;
  readonly rows: number;
  readonly bytes: Uint8Array;
}

type Requests = Pick<EditionOptions, 'key' | 'signal' | 'clock' | 'retryForMs' | 'idleMs' | 'onInterrupted'>;

interface Subtle {
  digest(name: string, bytes: Uint8Array): Promise<ArrayBuffer>;
}

/** The chunks that are fetched at once. */
const PARALLEL = 4;

/** The head of an edition. */
export async function headOf(url: URL, requests: Requests): Promise<EditionHead> {
  return filesAt(url, requests).head();
}

/** The rows of an edition, chunk by chunk. Rejects with Refusal at the end when they are not the edition. */
export async function* readChunks(
  url: URL,
  head: EditionHead,
  requests: Requests,
): AsyncGenerator<ChunkOfEdition, void, undefined> {
  const files = filesAt(url, requests);
  const names = new Sha256();
  const encoder = new TextEncoder();
  const sum = new EditionSum({
    update: (text) => names.update(encoder.encode(text)),
    digest: () => names.digest(),
  });
  const chunks = inOrder(files.chunks(head), PARALLEL, async (entry, signal) => ({
    entry,
    bytes: await files.chunk(head, entry, signal),
  }));
  let last: ChunkOfEdition | null = null;
  for await (const { entry, bytes } of chunks) {
    requests.signal.throwIfAborted(); // chunks that are here already end with the rest
    if (last) yield last;
    sum.add({ ...entry, crc32: crc32(bytes).toString(16).padStart(8, '0') });
    last = { name: entry.name, rows: entry.rows, bytes };
  }
  requests.signal.throwIfAborted();
  sum.check(head); // before the last chunk: who has that has all
  if (last) yield last;
}

function filesAt(url: URL, requests: Requests): EditionFiles {
  const urls = editionUrls(url);
  if (!urls) throw new TypeError(`${url.href} is not the URL of an edition, such as /items/edition`);
  return new EditionFiles(urls, {
    ...requests,
    getAnswer: cachedByFetch(),
    decompress,
    sha256,
    formats: ['ndjson.gz', 'ndjson'],
  });
}

/** Browsers undo gzip alone. */
async function decompress(bytes: Uint8Array, coding: 'gz' | 'br', most: number): Promise<Uint8Array> {
  if (coding !== 'gz') throw new Refusal('this client reads no Brotli');
  const plain = new Uint8Array(most);
  let length = 0;
  try {
    const stream = new Blob([bytes.slice()]).stream().pipeThrough(new DecompressionStream('gzip'));
    const reader = stream.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const piece = next.value as Uint8Array;
      if (length + piece.length > most) {
        await reader.cancel();
        throw new Mismatch('a file has more bytes than its entry says');
      }
      plain.set(piece, length);
      length += piece.length;
    }
  } catch (error) {
    if (error instanceof Mismatch || !(error instanceof Error)) throw error;
    throw new Mismatch(`a file cannot be decompressed: ${error.message}`, { cause: error }); // nothing else fails here
  }
  return plain.subarray(0, length);
}

/** Pages that came over plain HTTP have no `crypto.subtle`. */
async function sha256(bytes: Uint8Array): Promise<string> {
  const subtle = (globalThis.crypto as { readonly subtle?: Subtle } | undefined)?.subtle;
  if (subtle) {
    const digest = new Uint8Array(await subtle.digest('SHA-256', bytes.slice()));
    return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  }
  const hash = new Sha256();
  hash.update(bytes);
  return hash.digest();
}
