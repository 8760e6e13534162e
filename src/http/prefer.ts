import type { Request } from '../engine/edge.ts';

/** Whether Prefer contains a preference (RFC 7240, 2), such as `respond-async` or `return=minimal`. */
export function prefers({ headers }: Request, preference: string): boolean {
  const [name = '', value = ''] = preference.split('=');
  return (headers.prefer ?? '').split(',').some((entry) => {
    const [, token = '', quoted, word] =
      /^\s*([\w-]+)\s*(?:=\s*(?:"([^"]*)"|([\w-]*)))?\s*(?:;.*)?$/.exec(entry) ?? [];
    return token.toLowerCase() === name && (quoted ?? word ?? '').toLowerCase() === value;
  });
}
