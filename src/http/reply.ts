import type { Reply } from '../engine/edge.ts';

/** A JSON answer. `text` is what a precompiled serializer made. */
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
