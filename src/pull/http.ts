import { request as requestPlain, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import type { Transform } from 'node:stream';
import { Blocks } from './blocks.ts';
import { decoderOf, type Compression } from './decode.ts';
import { clipped, failureOf, Interrupted, Refused } from './failure.ts';

export interface Asking {
  readonly compression: Compression;
  /** An API key, sent as `Authorization: Bearer`. null for none. */
  readonly key: string | null;
  /** A connection without data for this long is closed. Milliseconds. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/** A source of answers. Rejects with Interrupted when another attempt may succeed, otherwise with Refused. */
export type Source = (url: URL, accept: string, asking: Asking) => Promise<AsyncIterable<Buffer>>;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const LONGEST_PROBLEM = 64 * 1024;
/** The longest JSON answer, in bytes: 64 partitions whose URLs have at most 8 KB each, or one item. */
const LONGEST_JSON = 4 * 1024 * 1024;

/**
 * The decoded content of the answer to a GET. It ends where the connection ends, whole or cut. All received
 * bytes are passed on in both cases, which pipelines and fetch do not do. The connection is closed when the
 * caller stops reading.
 */
export const httpSource: Source = async (url, accept, asking) => {
  const { request, response } = await ask(url, accept, asking);
  const coding = response.headers['content-encoding'];
  const decoder = decoderOf(coding);
  if (!decoder) {
    request.destroy();
    throw new Refused(`the server answers with the coding ${clipped(String(coding))}`);
  }
  const bytes = contentOf(request, response, decoder, asking.idleMs);
  const status = response.statusCode ?? 0;
  if (status !== 200) throw await problemOf(status, response, bytes);
  const type = response.headers['content-type'] ?? 'nothing';
  if (type.split(';')[0] === accept) return bytes;
  request.destroy();
  throw new Refused(`the server answers with ${clipped(type)}, not with ${accept}`);
};

function ask(url: URL, accept: string, { compression, key, idleMs, signal }: Asking) {
  const headers = {
    accept,
    'accept-encoding': compression === 'none' ? 'identity' : compression,
    ...(key !== null && { authorization: `Bearer ${key}` }),
  };
  const send = url.protocol === 'https:' ? requestTls : requestPlain;
  return new Promise<{ request: ClientRequest; response: IncomingMessage }>((resolve, reject) => {
    const request = send(url, { agent: false, headers, signal });
    request.on('error', (error) => reject(new Interrupted(messageOf(error), { cause: error })));
    request.on('response', (response) => resolve({ request, response }));
    request.setTimeout(idleMs, () =>
      request.destroy(new Interrupted(`nothing came for ${Math.round(idleMs / 1000)} s`)),
    );
    request.end();
  });
}

function messageOf(error: Error): string {
  const isMalformed = 'code' in error && String(error.code).startsWith('HPE_');
  return isMalformed ? `the answer is not HTTP as it should be: ${error.message}` : error.message;
}

async function* contentOf(
  request: ClientRequest,
  response: IncomingMessage,
  decoder: Transform,
  idleMs: number,
): AsyncGenerator<Buffer, void, undefined> {
  // The idle timeout pauses while the client itself holds the connection back, since silence is then no fault
  // of the server.
  const goOn = () => {
    request.setTimeout(idleMs);
    response.resume();
  };
  response.on('data', (chunk: Buffer) => {
    if (decoder.write(chunk)) return;
    request.setTimeout(0);
    response.pause();
    decoder.once('drain', goOn);
  });
  response.on('error', () => undefined); // `close` follows; the content shows whether the answer is whole
  response.on('close', () => decoder.end());
  try {
    yield* decoder as AsyncIterable<Buffer>;
    if (request.errored instanceof Interrupted) throw request.errored; // the server was silent for too long
  } catch (error) {
    if (error instanceof Error && 'errno' in error)
      throw new Interrupted(`the coding is broken: ${error.message}`, { cause: error });
    throw error;
  } finally {
    response.removeAllListeners('data');
    request.destroy();
    decoder.destroy();
  }
}

async function problemOf(
  status: number,
  response: IncomingMessage,
  bytes: AsyncIterable<Buffer>,
): Promise<Error> {
  const seconds = Number(response.headers['retry-after'] ?? 0);
  const text = (await bytesOf(bytes, LONGEST_PROBLEM)).toString().trim();
  const isProblem = response.headers['content-type']?.startsWith('application/problem+json') ?? false;
  const said = isProblem ? detailOf(text) : '';
  if (REDIRECTS.has(status))
    return new Refused(`the server answers ${status}; a pull follows no redirects, give it the URL itself`);
  const message = `the server answers ${status}${said === '' ? '' : `: ${clipped(said)}`}`;
  return failureOf(status, message, Number.isFinite(seconds) ? seconds * 1000 : 0);
}

function detailOf(text: string): string {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    return typeof detail === 'string' ? detail : '';
  } catch (error) {
    if (error instanceof SyntaxError) return '';
    throw error;
  }
}

/**
 * The whole content, or its beginning when it is longer than `most` bytes. The beginning is a little longer
 * than `most`.
 */
async function bytesOf(bytes: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
  const content = new Blocks();
  let length = 0;
  for await (const chunk of bytes) {
    content.add(chunk);
    length += chunk.length;
    if (length > most) break;
  }
  return Buffer.concat(content.take());
}

/**
 * The JSON answer of a URL. Rejects with Refused when it is too long, with Interrupted when it is not valid
 * JSON.
 */
export async function jsonOf(source: Source, url: URL, asking: Asking): Promise<unknown> {
  const json = await bytesOf(await source(url, 'application/json', asking), LONGEST_JSON);
  if (json.length > LONGEST_JSON)
    throw new Refused(`${url.pathname} answers with more than ${LONGEST_JSON / 1024 / 1024} MiB`);
  try {
    return JSON.parse(json.toString());
  } catch (error) {
    if (error instanceof SyntaxError) throw new Interrupted(`half an answer came from ${url.pathname}`);
    throw error;
  }
}
