import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { Cutter } from '../../../src/base/edition/cut.ts';
import type { ChunkEntry, DeltaEntry, EditionHead, IndexEntry } from '../../../src/base/edition/head.ts';
import { chunkFile, deltaFile, indexFile, nameText } from '../../../src/base/edition/names.ts';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { listening } from '../ports.ts';

/** An edition, and its files by their paths in the folder of its resource. */
export interface MadeEdition {
  readonly head: EditionHead;
  readonly chunks: readonly ChunkEntry[];
  readonly lines: readonly string[];
  readonly rows: Buffer;
  readonly files: ReadonlyMap<string, Buffer>;
}

interface Making {
  readonly target?: number;
  readonly formats?: readonly string[];
  /** An older edition, from which there is a delta. */
  readonly before?: MadeEdition;
  readonly changes?: string;
  /** The chunks of an index file. */
  readonly indexed?: number;
  readonly files?: string;
}

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const hex = (bytes: Uint8Array) => crc32(bytes).toString(16).padStart(8, '0');
const QUICK = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const CODINGS: Readonly<Record<string, (rows: Buffer) => Buffer>> = {
  'ndjson.gz': (rows) => gzipSync(rows, { level: 1 }),
  'ndjson.br': (rows) => brotliCompressSync(rows, QUICK),
  ndjson: (rows) => rows,
};

/** Cuts rows by the rule, as the server does. */
export function cutRows(rows: Buffer, target: number): Buffer[] {
  const cutter = new Cutter(target);
  const chunks: Buffer[] = [];
  for (let at = 0; at < rows.length;) {
    const end = cutter.take(rows, at);
    chunks.push(rows.subarray(at, end < 0 ? undefined : end));
    at = end < 0 ? rows.length : end;
  }
  return chunks;
}

/** An edition of rows: lines in the order of their ids, without LF. */
export function madeEdition(lines: readonly string[], making: Making = {}): MadeEdition {
  const { target = 4096, formats = ['ndjson.gz'], before, changes = 'c0', indexed = 3 } = making;
  const rows = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  const files = new Map<string, Buffer>();
  const chunks = cutRows(rows, target).map((chunk) => {
    const entry = entryOf(chunk, formats);
    for (const format of formats)
      files.set(`chunks/${chunkFile(entry.name, format)}`, CODINGS[format]?.(chunk) ?? chunk);
    return entry;
  });
  const edition = sha256(nameText(chunks.map(({ name }) => name)));
  const deltas = before ? [deltaOf(before, lines, edition, files), ...before.head.deltas] : [];
  const head: EditionHead = {
    edition,
    resource: 'orders',
    sequence: (before?.head.sequence ?? -1) + 1,
    at: new Date(Date.UTC(2026, 10, 24, 4, (before?.head.sequence ?? -1) + 1)).toISOString(),
    rows: lines.length,
    bytes: rows.length,
    crc32: hex(rows),
    changes,
    target,
    formats,
    files: making.files ?? 'chunks/',
    index: indexOf(chunks, indexed, files),
    deltas,
    kept: before ? [{ edition: before.head.edition, at: before.head.at }, ...before.head.kept] : [],
  };
  const text = Buffer.from(JSON.stringify(head));
  files.set('edition.json', text);
  files.set(`edition/${edition}.json`, text);
  return { head, chunks, lines, rows, files };
}

function entryOf(chunk: Buffer, formats: readonly string[]): ChunkEntry {
  const lines = chunk.toString().split('\n').slice(0, -1);
  const idOf = (line = '{}') => Object.values(JSON.parse(line) as object)[0] as unknown;
  return {
    name: sha256(chunk),
    rows: lines.length,
    bytes: chunk.length,
    crc32: hex(chunk),
    first: idOf(lines[0]),
    last: idOf(lines.at(-1)),
    bound: 'AAAA',
    sizes: Object.fromEntries(formats.map((format) => [format, (CODINGS[format]?.(chunk) ?? chunk).length])),
  };
}

/** Index files of so many chunks each, of two levels where there are more than three of them. */
function indexOf(chunks: readonly ChunkEntry[], size: number, files: Map<string, Buffer>): IndexEntry[] {
  const put = (level: number, value: object, of: readonly (ChunkEntry | IndexEntry)[]): IndexEntry => {
    const text = Buffer.from(`${JSON.stringify(value)}\n`);
    const name = sha256(text);
    files.set(`chunks/${indexFile(name)}`, text);
    const sum = (get: (one: ChunkEntry | IndexEntry) => number) => of.reduce((all, one) => all + get(one), 0);
    return {
      name,
      level,
      chunks: sum((one) => ('chunks' in one ? one.chunks : 1)),
      rows: sum(({ rows }) => rows),
      bytes: sum(({ bytes }) => bytes),
    };
  };
  const groups = <T>(list: readonly T[]) =>
    Array.from({ length: Math.ceil(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size));
  const lowest = groups(chunks).map((group) => put(0, { level: 0, chunks: group }, group));
  return lowest.length <= 3
    ? lowest
    : groups(lowest).map((group) => put(1, { level: 1, index: group }, group));
}

function deltaOf(
  before: MadeEdition,
  lines: readonly string[],
  to: string,
  files: Map<string, Buffer>,
): DeltaEntry {
  const keyOf = (line: string) => /^\{"_?id":((?:"(?:[^"\\]|\\.)*"|[^,}])*)/.exec(line)?.[0] ?? '';
  const now = new Set(lines.map(keyOf));
  const old = new Set(before.lines);
  const removed = before.lines.map(keyOf).filter((key) => !now.has(key));
  const rows = lines.filter((line) => !old.has(line));
  const text = Buffer.from(
    [...removed.map((key) => `{"removed":${key}}}`), ...rows].map((line) => `${line}\n`).join(''),
  );
  const file = gzipSync(text);
  const name = sha256(text);
  files.set(`chunks/${deltaFile(name)}`, file);
  return {
    from: before.head.edition,
    to,
    name,
    rows: rows.length,
    removed: removed.length,
    bytes: file.length,
  };
}

/** Writes the files of editions into a folder, the newest last, as a server leaves them. */
export async function writeEditions(folder: string, editions: readonly MadeEdition[]): Promise<void> {
  for (const { files } of editions)
    for (const [path, bytes] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), bytes);
    }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => boolean;

/** A server of the editions of `/orders`. */
export interface EditionServer {
  readonly origin: string;
  /** The URL of the newest head. */
  readonly url: string;
  /** The paths of requests, without `/orders/`. */
  readonly asked: string[];
  /** The bytes of all answers. */
  readonly sent: { bytes: number };
  readonly files: Map<string, Buffer>;
  /** Answers a request in another way, and returns whether it did. */
  handle: Handle;
  /** Makes an edition the newest. `keeps`: whether the files of the others stay. */
  publish(edition: MadeEdition, keeps?: boolean): void;
}

export async function editionServer(
  t: TestContext,
  ...editions: readonly MadeEdition[]
): Promise<EditionServer> {
  const files = new Map<string, Buffer>();
  const asked: string[] = [];
  const sent = { bytes: 0 };
  const server = createServer((request, response) => {
    const path = (request.url ?? '').replace('/orders/', '');
    asked.push(path);
    if (opened.handle(request, response)) return;
    const bytes = files.get(path) ?? files.get(`${path}.json`);
    const etag = path === 'edition' ? nameIn(bytes) : `"${path}"`;
    if (bytes && request.headers['if-none-match'] === etag)
      return void response.writeHead(304, { etag }).end();
    sent.bytes += bytes?.length ?? 0;
    if (bytes) response.writeHead(200, { etag, 'content-length': bytes.length }).end(bytes);
    else
      response
        .writeHead(404, { 'content-type': 'application/problem+json' })
        .end('{"detail":"It is not here."}');
  });
  const origin = `http://127.0.0.1:${await listening(t, server)}`;
  const opened: EditionServer = {
    origin,
    url: `${origin}/orders/edition`,
    asked,
    sent,
    files,
    handle: () => false,
    publish: (edition, keeps = true) => {
      if (!keeps) files.clear();
      for (const [path, bytes] of edition.files) files.set(path, bytes);
    },
  };
  for (const edition of editions) opened.publish(edition);
  return opened;
}

function nameIn(head: Buffer | undefined): string {
  const { edition } = JSON.parse(head?.toString() ?? '{}') as { edition?: string };
  return `"${edition}"`;
}

/** Rows with these ids, as JSON text, each with a text of its own. */
export function rowsOfIds(ids: readonly string[], size = 120): string[] {
  return ids.map(
    (id, n) => `{"id":${id},"n":${n},"text":"${`${n * 7919} `.repeat(size / 6).slice(0, size)}"}`,
  );
}

/** Ids in the order in which a store has them. */
export const IDS: Readonly<Record<string, readonly string[]>> = {
  texts: Array.from({ length: 600 }, (_, n) => `"d${String(n * 3).padStart(7, '0')}"`),
  numbers: Array.from({ length: 600 }, (_, n) => String(n * 3 - 300)),
  fractions: Array.from({ length: 600 }, (_, n) => String(n / 4)),
  objectIds: Array.from({ length: 600 }, (_, n) => `"65a0${(n * 65_537).toString(16).padStart(20, '0')}"`),
  uuids: Array.from(
    { length: 600 },
    (_, n) => `"${(n * 7_000_003).toString(16).padStart(8, '0')}-0000-4000-8000-000000000000"`,
  ),
  escapes: Array.from({ length: 600 }, (_, n) =>
    JSON.stringify(`a "${String(n).padStart(4, '0')}" \\ \n,}é€😀`),
  ),
  objects: Array.from({ length: 600 }, (_, n) => `{"a":${n},"b":"}\\",${n}"}`),
};
