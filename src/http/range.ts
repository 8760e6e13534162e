import { AppError } from '../base/errors.ts';
import type { FileBody, Reply, Request } from '../engine/edge.ts';

/**
 * Reduces a file's answer to the requested range, as a stream of known length (RFC 9110, 14). One range of bytes
 * gives 206; a range beyond the end throws AppError `range-not-satisfiable`. The whole file is sent when Range is not
 * a range of bytes, when it has several ranges, or when If-Range names another state. Other answers stay as they are.
 * Where the bytes are elsewhere, the answer to a GET is 307 to there, with the validators of the file.
 */
export function ranged(request: Request, reply: Reply): Reply {
  const { body } = reply;
  if (body.kind !== 'file') return reply;
  if (reply.status === 200 && body.elsewhere && mayGoElsewhere(request, reply))
    return { status: 307, headers: headersOfLink(reply, body.elsewhere()), body: { kind: 'none' } };
  const headers = { ...reply.headers, 'accept-ranges': 'bytes' };
  const range = reply.status === 200 && isWanted(request, reply) ? rangeOf(request, body) : null;
  if (range === null) return { ...reply, headers, body: part(body, 0, body.length) };
  const [start, end] = range;
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${start}-${end - 1}/${body.length}` },
    body: part(body, start, end),
  };
}

function part({ write }: FileBody, start: number, end: number): Reply['body'] {
  if (start === end) return { kind: 'none' };
  return { kind: 'stream', length: end - start, run: (sink) => write(sink, start, end) };
}

/** A link is for GET alone. Our tag means nothing elsewhere: a range that depends on it comes from here. */
function mayGoElsewhere({ method, headers }: Request, reply: Reply): boolean {
  return (
    method === 'GET' && (headers['if-range'] === undefined || headers['if-range'] !== reply.headers.etag)
  );
}

const OF_LINK: ReadonlySet<string> = new Set(['etag', 'repr-digest', 'changes-from']);

/** No cache keeps the link, which ends. */
function headersOfLink({ headers }: Reply, location: string): Reply['headers'] {
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => OF_LINK.has(name)));
  return { ...kept, location, 'cache-control': 'no-store' };
}

/**
 * Range applies to GET only (14.2). With If-Range it applies only to the state that the tag names, compared strongly
 * (13.1.5). A date in If-Range matches no state here.
 */
function isWanted({ method, headers }: Request, reply: Reply): boolean {
  const condition = headers['if-range'];
  return method === 'GET' && (condition === undefined || condition === reply.headers.etag);
}

/** Start and end of the range, exclusive; null: the whole file. */
function rangeOf({ headers }: Request, { length }: FileBody): readonly [number, number] | null {
  const [, first, last] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(headers.range ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first === '') return within(Math.max(0, length - Number(last)), length, length);
  const end = last === '' ? length : Math.min(Number(last) + 1, length);
  return last !== '' && Number(last) < Number(first) ? null : within(Number(first), end, length);
}

function within(start: number, end: number, length: number): readonly [number, number] {
  if (start < end) return [start, end];
  throw new AppError(
    'range-not-satisfiable',
    `The range has no byte of the file, which has ${length} bytes.`,
    {
      headers: { 'content-range': `bytes */${length}` },
    },
  );
}
