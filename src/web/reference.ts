import { readFile } from 'node:fs/promises';
import { asset } from '../asset.ts';
import { bytes } from '../http/reply.ts';
import type { Route } from '../http/route.ts';
import { fingerprint } from '../rows/fingerprint.ts';
import { fileRoute } from './file-route.ts';

/** The files of the page: its HTML, its script, and Scalar's, which the build makes. */
const FILES = ['reference/index.html', 'reference/start.js', 'scalar.js'] as const;

/**
 * Allows nothing from other hosts and no inline script. Scalar sets styles from its script, which needs
 * 'unsafe-inline'.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** GET /docs: the reference page, which the browser renders from /openapi.json, and its two scripts. */
export function referenceRoutes() {
  const [page, start, scalar] = FILES;
  return {
    page: file('/docs', HTML, 'Get the API reference page', 'getReference', page),
    start: file(
      '/docs/start.js',
      SCRIPT,
      'Get the start script of the reference page',
      'getReferenceStart',
      start,
    ),
    script: file(
      '/docs/scalar.js',
      SCRIPT,
      'Get the renderer script of the reference page',
      'getReferenceScript',
      scalar,
    ),
  } satisfies Record<string, Route>;
}

function file(path: string, type: string, summary: string, id: string, name: string): Route {
  const contentWithTag = lazily(async () => {
    const content = await readFile(asset(`web/${name}`));
    return { content, etag: `"${fingerprint(content)}"` };
  });
  const [media = ''] = type.split(';');
  return fileRoute('The content of the file', [media], {
    ...{ path, id, summary },
    handler: async () => {
      const { content, etag } = await contentWithTag();
      return bytes(200, content, {
        'content-type': type,
        'content-security-policy': POLICY,
        'cache-control': 'no-cache',
        etag,
      });
    },
  });
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}
