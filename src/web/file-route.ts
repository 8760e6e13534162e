import { bytes } from '../http/reply.ts';
import { notModified, type Route } from '../http/route.ts';
import { fingerprint } from '../rows/fingerprint.ts';

type FileRoute = Pick<Route, 'path' | 'id' | 'summary' | 'description' | 'produces'> & {
  /** The media type, for texts with their charset. */
  readonly type: string;
  readonly cache: string;
  /** The Content-Security-Policy of a page. */
  readonly policy?: string;
  /** Reads the content, when it is first asked for. */
  readonly read: () => Promise<Uint8Array>;
};

/** GET of a file that needs no key. */
export function fileRoute({ type, cache, policy, read, ...route }: FileRoute): Route {
  const headers = {
    'content-type': type,
    'cache-control': cache,
    ...(policy !== undefined && { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }),
  };
  const contentWithTag = async () => {
    const content = await read();
    return { content, etag: `"${fingerprint(content)}"` };
  };
  let made: ReturnType<typeof contentWithTag> | undefined;
  return {
    ...route,
    method: 'GET',
    access: 'open',
    cost: 'page',
    tag: 'Server',
    isFile: true,
    headers: ['If-None-Match'],
    answers: {
      200: {
        description: 'The content of the file',
        headers: ['ETag', 'Cache-Control'],
        content: { [type.replace(/;.*/, '')]: { schema: { type: 'string' } } },
      },
      304: notModified('this content'),
    },
    problems: ['invalid-header', 'precondition-failed'],
    handler: async () => {
      const { content, etag } = await (made ??= contentWithTag());
      return bytes(200, content, { ...headers, etag });
    },
  };
}
