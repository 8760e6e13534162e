import type { Reply, Request } from '../engine/edge.ts';
import { empty, json, NOT_STORED } from './reply.ts';

/** Whether Prefer contains a preference (RFC 7240, 2), such as `respond-async` or `return=minimal`. */
export function prefers({ headers }: Request, preference: string): boolean {
  return (headers.prefer ?? '').split(',').some((entry) => {
    const [setting = ''] = entry.split(';', 1); // without its parameters
    const [name = '', value = '', ...others] = setting.split('=').map((word) => word.trim().toLowerCase());
    const word = /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
    return others.length === 0 && (word === '' ? name : `${name}=${word}`) === preference;
  });
}

/** The answer to the removal of what had this id, without a body if the client prefers that. */
export function removed(request: Request, id: string): Reply {
  if (!prefers(request, 'return=minimal'))
    return json(200, JSON.stringify({ id, deleted: true }), NOT_STORED);
  return empty(204, { ...NOT_STORED, 'preference-applied': 'return=minimal' });
}
