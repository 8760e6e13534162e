import type { Request } from '../engine/edge.ts';

/** Whether Prefer contains a preference (RFC 7240, 2), such as `respond-async` or `return=minimal`. */
export function prefers({ headers }: Request, preference: string): boolean {
  return (headers.prefer ?? '').split(',').some((entry) => {
    const [setting = ''] = entry.split(';', 1); // without its parameters
    const [name = '', value = '', ...others] = setting.split('=').map((word) => word.trim().toLowerCase());
    const word = /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
    return others.length === 0 && (word === '' ? name : `${name}=${word}`) === preference;
  });
}
