import type { Reply } from '../engine/edge.ts';

/** Returns a JSON reply. `text` is the output of a precompiled serializer. */
export function json(
  status: number,
  text: string,
  headers: Reply['headers'] = {},
  type = 'application/json',
): Reply {
  return bytes(status, Buffer.from(text), { 'content-type': type, ...headers });
}

export function bytes(status: number, body: Uint8Array, headers: Reply['headers']): Reply {
  return { status, headers, body: { kind: 'bytes', bytes: body } };
}

export function empty(status: number, headers: Reply['headers'] = {}): Reply {
  return { status, headers, body: { kind: 'none' } };
}

/** Of answers that must not be served again, as those to writes (RFC 9110, 9.3.3). */
export const NOT_STORED = { 'cache-control': 'no-store' };

type Writing = void | Promise<void>;

/** Calls `around` for each write and flush of a stream, with its bytes. It calls what it is given, or throws. */
export function aroundWrites(reply: Reply, around: (write: () => Writing, bytes: number) => Writing): Reply {
  const { body } = reply;
  if (body.kind !== 'stream') return reply;
  const run: typeof body.run = (sink) =>
    body.run({
      chunkBytes: sink.chunkBytes,
      signal: sink.signal,
      write: (chunk) => around(() => sink.write(chunk), chunk.length),
      flush: (behind) => around(() => sink.flush(behind), behind?.length ?? 0),
      end: () => sink.end(),
      fail: (error) => sink.fail(error),
    });
  return { ...reply, body: { ...body, run } };
}
