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
