import { brotliDecompressSync, gunzipSync } from 'node:zlib';

/** Pages of more bytes are not checked. */
const MOST_BYTES = 8 * 1024 * 1024;

/** A page that is kept while it comes, and then checked. */
export class CheckedPage {
  readonly #path: string;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** `path`: what was asked, with its query. */
  constructor(path: string) {
    this.#path = path;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes <= MOST_BYTES) this.#pieces.push(Buffer.from(piece));
  }

  /** What is wrong with the page. null: nothing. */
  fault(coding: string | null): string | null {
    if (this.#bytes > MOST_BYTES) return null;
    let page: unknown;
    try {
      page = JSON.parse(decoded(Buffer.concat(this.#pieces), coding).toString());
    } catch (error) {
      return `a page cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    }
    return faultOf(page, new URL(this.#path, 'http://server').searchParams);
  }
}

interface DecodedPage {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

function decoded(bytes: Buffer, coding: string | null): Buffer {
  if (coding === null || coding === 'identity') return bytes;
  const decode = coding === 'br' ? brotliDecompressSync : coding === 'gzip' ? gunzipSync : null;
  if (!decode) throw new Error(`its content coding is ${coding}`);
  // The type definitions do not know of `info`. Without it, bytes behind the end are left out without a word.
  const { buffer, engine } = decode(bytes, { info: true }) as unknown as DecodedPage;
  if (engine.bytesWritten === bytes.length) return buffer;
  throw new Error(`bytes follow behind the compressed ones, from byte ${engine.bytesWritten}`);
}

/** A page has rows with different keys, in the order that was asked for, and as many as its limit when more follow. */
function faultOf(answer: unknown, query: URLSearchParams): string | null {
  const { data, page } = Object(answer) as { data?: unknown; page?: { limit?: unknown; hasMore?: unknown } };
  if (!Array.isArray(data) || typeof page?.limit !== 'number' || typeof page.hasMore !== 'boolean')
    return 'a page has no data, or does not say whether more follows';
  const asked = query.get('limit');
  if (asked !== null && page.limit !== Number(asked))
    return `a page of limit ${asked} has the limit ${page.limit}`;
  if (data.length > page.limit) return `a page of limit ${page.limit} has ${data.length} rows`;
  if (page.hasMore && data.length < page.limit)
    return `a page of limit ${page.limit} has only ${data.length} rows, although more follow`;
  const keys = data.map(keyOf);
  if (keys.includes(undefined)) return 'a page has a row without a key';
  const exact = keys.filter((key) => typeof key === 'string' || Number.isSafeInteger(key)); // JSON.parse rounds others
  if (new Set(exact).size < exact.length) return 'a page has the same row twice';
  return isOrdered(data, query.get('sort'))
    ? null
    : 'the rows of a page are not in the order that was asked for';
}

const ORDER = /^(.+)_(asc|desc)$/;

/**
 * Whether neighbours with numbers have them in the order of `sort`. Other kinds stand for values whose order the answer
 * does not show: a text may be a text, a date or an ObjectId.
 */
function isOrdered(rows: readonly unknown[], sort: string | null): boolean {
  const [, path = '', direction] = ORDER.exec(sort ?? '') ?? [];
  const values = rows.map((row) => valueAt(row, path.split('.')));
  return values.every((value, i) => {
    const before = i === 0 ? null : values[i - 1];
    if (typeof before !== 'number' || typeof value !== 'number') return true;
    return direction === 'desc' ? before >= value : before <= value;
  });
}

function valueAt(row: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return row;
  return valueAt((Object(row) as Record<string, unknown>)[name], rest);
}

function keyOf(row: unknown): unknown {
  const { id, _id = id } = Object(row) as { readonly id?: unknown; readonly _id?: unknown };
  return _id;
}
