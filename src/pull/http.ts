import { request as requestPlain, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { PassThrough, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import { brotliDecompress, constants, createBrotliDecompress, createGunzip, gunzip } from 'node:zlib';
import { clipped } from '../terminal/text.ts';
import type { Answer } from './export-file.ts';
import type { RequestOptions } from './proved-rows.ts';
import { failureOfAnswer, Interruption, jsonIn, Mismatch, Refusal } from './retry.ts';

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const LONGEST_PROBLEM = 64 * 1024;
const MIB = 1024 * 1024;
/** The longest JSON answer, in bytes: 64 partitions whose URLs have at most 8 KB each, or one item. */
const LONGEST_JSON = 4 * MIB;

/**
 * The decoded content of the answer to a GET. It ends where the connection ends, whole or cut, and all received bytes are
 * passed on in both cases, which pipelines and fetch do not do (fetch also takes more of the processor's time: a sixth for
 * Brotli, a third for gzip). Rejects with Interruption when another attempt may succeed, otherwise with Refusal.
 */
export async function getContent(
  url: URL,
  accept: string,
  options: RequestOptions,
): Promise<AsyncIterable<Buffer>> {
  const { compression, key, signal } = options;
  const headers = {
    accept,
    'accept-encoding': compression === 'none' ? 'identity' : compression,
    ...(key !== null && { authorization: `Bearer ${key}` }),
  };
  const { request, response } = await send(url, headers, signal);
  const coding = response.headers['content-encoding'];
  const decoder = decoderOf(coding);
  if (!decoder) {
    request.destroy();
    throw new Refusal(
      `the server answered with the content coding ${clipped(String(coding))}, which pull cannot decode`,
    );
  }
  const content = decoded(request, response, decoder);
  if (response.statusCode !== 200) throw await problemOf(response, content);
  const type = response.headers['content-type'] ?? 'no content type';
  if (type.split(';')[0] === accept) return content;
  request.destroy();
  throw new Refusal(`the server answered with ${clipped(type)}, not with ${accept}`);
}

/** The JSON answer of a URL, of at most so many bytes. Rejects as getContent does. */
export async function getJson(url: URL, options: RequestOptions, most = LONGEST_JSON): Promise<unknown> {
  const json = await beginningOf(await getContent(url, 'application/json', options), most + 1);
  if (json.length > most) throw new Refusal(`the answer of ${url.pathname} has more than ${most / MIB} MiB`);
  const value = jsonIn(json.toString());
  if (value === undefined) throw new Interruption(`the answer of ${url.pathname} is incomplete or not JSON`);
  return value;
}

/** See GetAnswer of export-file.ts. */
export async function getAnswer(
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answer> {
  const { request, response } = await send(url, headers, signal);
  return {
    status: response.statusCode ?? 0,
    header: (name) => response.headers[name]?.toString(),
    content: decoded(request, response, new PassThrough()),
    isRedirected: false,
  };
}

function send(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
  const requestOf = url.protocol === 'https:' ? requestTls : requestPlain;
  return new Promise<{ request: ClientRequest; response: IncomingMessage }>((resolve, reject) => {
    const request = requestOf(url, { agent: false, headers, signal });
    request.on('error', (error) => reject(new Interruption(error.message, { cause: error })));
    request.on('response', (response) => resolve({ request, response }));
    request.end();
  });
}

/**
 * Undoes a content coding. A cut stream is decoded as far as its bytes came. null: it is not supported. zlib reads nothing
 * behind zeros between two members of gzip, and behind the end of Brotli: what is lost there has no checkpoint.
 */
export function decoderOf(coding: string | undefined): Transform | null {
  switch (coding) {
    case 'br':
      return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
    case 'gzip':
      return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
    case undefined:
    case 'identity':
      return new PassThrough();
    default:
      return null;
  }
}

const inflate = { gz: promisify(gunzip), br: promisify(brotliDecompress) };

/** Undoes the coding of a file, of which at most so many bytes may come out. Rejects with Mismatch when that cannot be. */
export async function decompress(bytes: Uint8Array, coding: 'gz' | 'br', most: number): Promise<Buffer> {
  try {
    return await inflate[coding](bytes, { maxOutputLength: Math.max(1, most) });
  } catch (error) {
    if (error instanceof Error && 'code' in error)
      throw new Mismatch(`a file cannot be decompressed: ${error.message}`, { cause: error });
    throw error;
  }
}

async function* decoded(
  request: ClientRequest,
  response: IncomingMessage,
  decoder: Transform,
): AsyncGenerator<Buffer, void, undefined> {
  response.on('error', () => undefined); // `close` follows; the content shows whether the answer is whole
  response.on('close', () => decoder.end());
  response.pipe(decoder, { end: false });
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof Error && 'errno' in error)
      throw new Mismatch(`the answer cannot be decompressed: ${error.message}`, { cause: error });
    throw error;
  } finally {
    request.destroy();
    decoder.destroy();
  }
}

/** The failure that an answer with another status than 200 stands for. */
async function problemOf(response: IncomingMessage, content: AsyncIterable<Buffer>): Promise<Error> {
  const { statusCode: status = 0, headers } = response;
  const text = (await beginningOf(content, LONGEST_PROBLEM)).toString();
  if (REDIRECTS.has(status))
    return new Refusal(`the server answered ${status}; pull follows no redirects, so give it the final URL`);
  return failureOfAnswer(status, (name) => headers[name]?.toString(), text);
}

/** The first `most` bytes of a content. Reads no further. */
async function beginningOf(content: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(most);
  let length = 0;
  for await (const chunk of content) {
    length += chunk.copy(bytes, length);
    if (length === most) break;
  }
  return bytes.subarray(0, length);
}
