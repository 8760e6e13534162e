import type { Reply, Request } from './edge.ts';

/** 304 when If-None-Match names the answer's ETag: weak comparison (RFC 9110, 13.1.2), whatever the content coding. */
export function notModified(request: Request, reply: Reply): Reply {
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

/** A tag without its weakness and without the coding that applyCoding adds. */
export function opaque(tag: string): string {
  return tag.replace(/^W\//, '').replace(/^"(.*?)(-(br|gzip|zstd))?"$/, '$1');
}
