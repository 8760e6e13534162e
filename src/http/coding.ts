import { compress, compressBytes, type Coding } from '../pipeline/compress.ts';
import type { Reply, Request } from '../engine/edge.ts';

/** Compressing fewer bytes than this saves no packet. */
const SMALLEST_COMPRESSED = 1024;

/** A reply's headers as sent once `coding` was negotiated, and the coding that the reply gets. */
interface CodingChoice {
  readonly coding: Coding | 'identity';
  readonly headers: Reply['headers'];
}

/** Chooses how a reply is sent: in the negotiated coding, unless a rule forbids it. Compresses nothing. */
export function codedAs(reply: Reply, coding: Coding | 'identity', request: Request): CodingChoice {
  const { body } = reply;
  const uncoded = { coding: 'identity', headers: reply.headers } as const;
  if (body.kind !== 'bytes' && body.kind !== 'stream') return uncoded;
  if (body.kind === 'stream' && body.length !== undefined) return uncoded; // a file is sent as it is
  const headers: Reply['headers'] = { vary: 'Accept, Accept-Encoding', ...reply.headers }; // replies have no Vary
  const plain =
    coding === 'identity' ||
    /\bno-transform\b/i.test(reply.headers['cache-control'] ?? '') ||
    /\bno-transform\b/i.test(request.headers['cache-control'] ?? '') ||
    // Small answers stay uncompressed, unless the client refuses identity (negotiation did not offer it).
    (body.kind === 'bytes' && body.bytes.length < SMALLEST_COMPRESSED && !refusesIdentity(request));
  if (plain) return { coding: 'identity', headers };
  const etag = headers.etag && { etag: codedTag(headers.etag, coding) };
  return { coding, headers: { 'content-encoding': coding, ...headers, ...etag } };
}

/** Returns the reply as sent: see codedAs. */
export async function applyCoding(
  reply: Reply,
  negotiated: Coding | 'identity',
  request: Request,
): Promise<Reply> {
  const { body } = reply;
  const { coding, headers } = codedAs(reply, negotiated, request);
  if (coding === 'identity') return { ...reply, headers };
  if (body.kind === 'bytes')
    return { ...reply, headers, body: { kind: 'bytes', bytes: await compressBytes(coding, body.bytes) } };
  if (body.kind !== 'stream') return { ...reply, headers };
  const run: typeof body.run = async (sink) => {
    const compressor = compress(coding, sink);
    try {
      await body.run(compressor);
      await compressor.end();
    } catch (error) {
      compressor.fail(error);
      throw error;
    }
  };
  return { ...reply, headers, body: { kind: 'stream', run } };
}

function refusesIdentity(request: Request): boolean {
  return /(identity|\*)\s*;\s*q=0(\.0*)?\s*(,|$)/i.test(request.headers['accept-encoding'] ?? '');
}

/** A strong tag identifies bytes, and other codings have other bytes (RFC 9110, 8.8.3.3). */
function codedTag(etag: string, coding: string): string {
  return etag.startsWith('W/') ? etag : `${etag.slice(0, -1)}-${coding}"`;
}
