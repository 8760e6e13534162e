import { compress, compressBytes, type Coding } from '../stream/compress.ts';
import type { Reply, Request } from '../engine/edge.ts';

/** Compressing less than this saves no packet. Bytes. */
const SMALLEST_COMPRESSED = 1024;

/** The headers with which a reply travels when `coding` was negotiated, and the coding that it gets. */
export interface Coded {
  readonly coding: Coding | 'identity';
  readonly headers: Reply['headers'];
}

/** How a reply travels: in the coding that was negotiated, unless a reason speaks against it. Compresses nothing. */
export function codedAs(reply: Reply, coding: Coding | 'identity', request: Request): Coded {
  const { body } = reply;
  const uncoded = { coding: 'identity', headers: reply.headers } as const;
  if (body.kind !== 'bytes' && body.kind !== 'stream') return uncoded;
  if (body.kind === 'stream' && body.length !== undefined) return uncoded; // a file is sent as it is
  const headers: Reply['headers'] = { ...reply.headers, vary: 'Accept, Accept-Encoding' };
  const plain =
    coding === 'identity' ||
    /\bno-transform\b/i.test(reply.headers['cache-control'] ?? '') ||
    /\bno-transform\b/i.test(request.headers['cache-control'] ?? '') ||
    // Small answers stay plain, unless the client refuses that (negotiation gave no identity).
    (body.kind === 'bytes' && body.bytes.length < SMALLEST_COMPRESSED && !refusesIdentity(request));
  if (plain) return { coding: 'identity', headers };
  const etag = headers.etag && { etag: codedTag(headers.etag, coding) };
  return { coding, headers: { ...headers, 'content-encoding': coding, ...etag } };
}

/** The reply as it travels: see codedAs. */
export async function applyCoding(
  reply: Reply,
  negotiated: Coding | 'identity',
  request: Request,
): Promise<Reply> {
  const { body } = reply;
  const { coding, headers } = codedAs(reply, negotiated, request);
  if (coding === 'identity' || (body.kind !== 'bytes' && body.kind !== 'stream'))
    return { ...reply, headers };
  if (body.kind === 'bytes') {
    return {
      ...reply,
      headers,
      body: { kind: 'bytes', bytes: await compressBytes(coding, body.bytes) },
    };
  }
  return {
    ...reply,
    headers,
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
