import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { Export } from '../../../src/exports/export.ts';
import { EXPORTS } from '../../../src/exports/jobs.ts';
import type { Store } from '../../../src/store/store.ts';

type Headers = Record<string, string>;

/** `count` rows of about 230 bytes that hardly compress. */
export function exportRows(count: number) {
  return Array.from({ length: count }, (_, n) => ({
    _id: `i${String(n).padStart(7, '0')}`,
    category: ['books', 'größe', 'b'][n % 3] ?? '',
    price: ((n * 7919) % 99_991) / 4,
    name: `=thing ${n}, "quoted"\r\nand more`,
    note: `${Math.sin(n)}${Math.cos(n)}${Math.tan(n)}`,
    more: n % 50 === 0 ? { deep: [n, null] } : null,
  }));
}

/** Orders an export. Throws AssertionError unless the order is accepted. */
export async function order(url: string, body: object, headers: Headers = {}): Promise<Export> {
  const response = await post(url, body, headers);
  const text = await response.text();
  assert.equal(response.status, 202, text);
  return JSON.parse(text) as Export;
}

/** The bytes of an export's record. */
export async function recordOf(store: Pick<Store, 'records'>, id: string): Promise<Buffer> {
  const { before } = await (await store.records(EXPORTS)).change(id, () => 'keep');
  return Buffer.from(before ?? []);
}

export function post(url: string, body: object, headers: Headers = {}): Promise<Response> {
  const type = { 'content-type': 'application/json' };
  return fetch(`${url}/exports`, {
    method: 'POST',
    headers: { ...type, ...headers },
    body: JSON.stringify(body),
  });
}

/**
 * Polls an export until `isIt` returns true, by default until it is complete. Throws AssertionError when that
 * can no longer happen.
 */
export async function awaited(
  url: string,
  id: string,
  isIt: (found: Export) => boolean = isComplete,
  headers: Headers = {},
): Promise<Export> {
  for (;;) {
    const response = await fetch(`${url}/exports/${id}`, { headers });
    assert.equal(response.status, 200);
    const found = (await response.json()) as Export;
    if (isIt(found)) return found;
    await setTimeout(10); // the interval of polling
  }
}

function isComplete(found: Export): boolean {
  assert.ok(['queued', 'running', 'complete'].includes(found.state), JSON.stringify(found));
  return found.state === 'complete';
}

export async function fileOf(url: string, { file }: Export, headers: Headers = {}): Promise<Buffer> {
  assert.ok(file);
  const response = await fetch(url + file.url, { headers });
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

export function decompressed(bytes: Buffer, { request }: Export): Buffer {
  if (request.compression === 'gzip') return gunzipSync(bytes);
  return request.compression === 'br' ? brotliDecompressSync(bytes) : bytes;
}

/** The members of an order's body. */
export interface Body {
  readonly resource?: string;
  readonly compression?: string;
  readonly [name: string]: string | number | boolean | null | readonly string[] | undefined;
}

/** Orders an export, and asserts that its file is the stream of the same query. */
export async function exportedAsStreamed(url: string, body: Body): Promise<{ done: Export; bytes: Buffer }> {
  const done = await awaited(url, (await order(url, body)).id);
  const bytes = await fileOf(url, done);
  const { resource = 'items' } = body;
  const query = Object.entries(body)
    .filter(([name]) => name !== 'resource' && name !== 'compression')
    .map(([name, value]): [string, string] => [name, value === null ? 'null:' : String(value)]);
  const stream = await fetch(`${url}/${resource}/stream?${new URLSearchParams(query).toString()}`);
  const streamed = Buffer.from(await stream.arrayBuffer());
  assert.ok(decompressed(bytes, done).equals(streamed), JSON.stringify(done));
  return { done, bytes };
}
