import type { Reply } from '../engine/edge.ts';

/** Headers with one reference each, which is a path of this server, or a URL elsewhere. */
const REFERENCES = ['location', 'content-location'] as const;

/** Headers whose paths of this server begin with the path under which the client reaches it. */
export function mounted(headers: Reply['headers'], mount: string): Reply['headers'] {
  if (mount === '') return headers;
  const found = REFERENCES.flatMap((name) => {
    const path = headers[name];
    return path?.startsWith('/') === true ? [[name, mount + path] as const] : [];
  });
  return { ...headers, ...Object.fromEntries(found) };
}
