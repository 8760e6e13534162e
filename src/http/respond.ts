import { randomUUID } from 'node:crypto';
import { AppError } from '../errors.ts';
import { codings, compress, compressBytes, type Coding } from '../stream/compress.ts';
import type { Reply, Request, Serve } from './edge.ts';
import { encodingNegotiator } from './negotiate.ts';
import { problem } from './problem.ts';

/** Compressing less than this saves no packet. Bytes. */
const SMALLEST_COMPRESSED = 1024;
const LONGEST_URL = 8192;

export interface Log {
  error(details: object, message: string): void;
}

/**
 * Wraps the router with what holds for every answer: request id, problems for errors, conditional GET, content coding,
 * HEAD. The result is what an engine serves.
 */
export function createServe(route: (request: Request) => Reply | Promise<Reply>, log: Log): Serve {
  const negotiate = encodingNegotiator(codings);
  return async (request) => {
    const requestId = requestIdOf(request);
    const coding = negotiate(request.headers['accept-encoding']);
    let reply: Reply;
    try {
      if (request.path.length + request.query.length > LONGEST_URL) {
        throw new AppError('uri-too-long', `The URL may have ${LONGEST_URL} bytes.`);
      }
      if (coding === null) {
        throw new AppError(
          'not-acceptable',
          `Accept-Encoding refuses identity and names none of ${codings.join(', ')}.`,
        );
      }
      reply = notModified(request, await route(request));
    } catch (error) {
      reply = problem(error, request, requestId);
      // A read that ends because its client left is no failure, and nobody hears the answer.
      if (reply.status >= 500 && !request.signal.aborted)
        log.error({ requestId, method: request.method, path: request.path, err: error }, 'request failed');
    }
    const encoded = await encode(reply, coding ?? 'identity', request);
    const headers = { ...encoded.headers, 'x-request-id': requestId, 'x-content-type-options': 'nosniff' };
    return headOnly(request, { ...encoded, headers });
  };
}

/** The client's own id when it is harmless in a header and a log line, else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers['x-request-id'];
  return given !== undefined && /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}

/** 304 when If-None-Match names the answer's ETag: weak comparison (RFC 9110, 13.1.2), whatever the content coding. */
function notModified(request: Request, reply: Reply): Reply {
  const { etag } = reply.headers;
  const asked = request.headers['if-none-match'];
  const reading = request.method === 'GET' || request.method === 'HEAD';
  if (!reading || reply.status !== 200 || etag === undefined || asked === undefined) return reply;
  const tags = asked.match(/\*|"[^"]*"/g) ?? [];
  const same = tags.some((tag) => tag === '*' || opaque(tag) === opaque(etag));
  if (!same) return reply;
  const headers = Object.entries(reply.headers).filter(([name]) => name !== 'content-type');
  return { status: 304, headers: Object.fromEntries(headers), body: { kind: 'none' } };
}

/** A tag without its weakness and without the coding that `encode` adds. */
function opaque(tag: string): string {
  return tag.replace(/^W\//, '').replace(/^"(.*?)(-(br|gzip|zstd))?"$/, '$1');
}

/** Applies the content coding, unless a reason speaks against it. */
async function encode(reply: Reply, coding: Coding | 'identity', request: Request): Promise<Reply> {
  const { body } = reply;
  if (body.kind !== 'bytes' && body.kind !== 'stream') return reply;
  const headers: Reply['headers'] = { ...reply.headers, vary: 'Accept, Accept-Encoding' };
  const plain =
    coding === 'identity' ||
    /\bno-transform\b/i.test(reply.headers['cache-control'] ?? '') ||
    /\bno-transform\b/i.test(request.headers['cache-control'] ?? '') ||
    // Small answers stay plain, unless the client refuses that (negotiation gave no identity).
    (body.kind === 'bytes' && body.bytes.length < SMALLEST_COMPRESSED && !refusesIdentity(request));
  if (plain) return { ...reply, headers };
  const coded = {
    ...headers,
    'content-encoding': coding,
    ...(headers.etag && { etag: codedTag(headers.etag, coding) }),
  };
  if (body.kind === 'bytes') {
    return {
      ...reply,
      headers: coded,
      body: { kind: 'bytes', bytes: await compressBytes(coding, body.bytes) },
    };
  }
  return {
    ...reply,
    headers: coded,
    body: {
      kind: 'stream',
      run: async (sink) => {
        const compressor = compress(coding, sink);
        try {
          await body.run(compressor);
          await compressor.end();
        } catch (error) {
          compressor.fail(error);
          throw error;
        }
      },
    },
  };
}

function refusesIdentity(request: Request): boolean {
  return /(identity|\*)\s*;\s*q=0(\.0*)?\s*(,|$)/i.test(request.headers['accept-encoding'] ?? '');
}

/** A strong tag stands for bytes, and other codings have other bytes (RFC 9110, 8.8.3.3). */
function codedTag(etag: string, coding: string): string {
  return etag.startsWith('W/') ? etag : `${etag.slice(0, -1)}-${coding}"`;
}

/** HEAD: the head that GET would have. A stream's resources are given back by running it into a closed sink. */
async function headOnly(request: Request, reply: Reply): Promise<Reply> {
  if (request.method !== 'HEAD') return reply;
  if (reply.body.kind === 'bytes')
    return { ...reply, body: { kind: 'head', length: reply.body.bytes.length } };
  if (reply.body.kind !== 'stream') return reply;
  const unwanted = new AppError('not-found', 'HEAD has no body.');
  await reply.body.run(closedSink(unwanted)).catch((error: unknown) => {
    if (error !== unwanted) throw error;
  });
  return { ...reply, body: { kind: 'none' } };
}

function closedSink(reason: unknown) {
  const closed = () => {
    throw reason;
  };
  return {
    chunkBytes: 1024,
    signal: AbortSignal.abort(reason),
    write: closed,
    flush: closed,
    end: closed,
    fail: () => undefined,
  };
}
