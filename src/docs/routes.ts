import { readFile } from 'node:fs/promises';
import { parseQuery } from '../http/query.ts';
import { bytes } from '../http/reply.ts';
import type { Handler, Route } from '../http/router.ts';
import type { Operation } from '../openapi/operation.ts';
import { fingerprint } from '../serialize/fingerprint.ts';

/** Scalar's script; beside this file in the checkout and in the package. */
const BUNDLE = new URL('./scalar.js', import.meta.url);

/** Nothing from elsewhere, no script within the page; Scalar sets styles from its script, which is what 'unsafe-inline' is for. */
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

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sluice: reference</title>
<link rel="icon" href="data:,">
<div id="reference"></div>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</html>
`;

/** Every feature that would ask another host is off. */
const START = `Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  defaultOpenAllTags: true,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
});
`;

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** GET /docs: the reference page, made by the reader's browser from /openapi.json. */
export function docsRoutes(): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/docs',
      ...file(HTML, 'The reference page', 'getReference', () => Buffer.from(PAGE)),
    },
    {
      method: 'GET',
      path: '/docs/start.js',
      ...file(SCRIPT, 'Its beginning', 'getReferenceStart', () => Buffer.from(START)),
    },
    {
      method: 'GET',
      path: '/docs/scalar.js',
      ...file(SCRIPT, 'Its script', 'getReferenceScript', () => readFile(BUNDLE)),
    },
  ];
}

function file(
  type: string,
  summary: string,
  id: string,
  read: () => Buffer | Promise<Buffer>,
): { readonly doc: Operation; readonly handler: Handler } {
  const contentWithTag = lazily(async () => {
    const content = await read();
    return { content, etag: `"${fingerprint(content)}"` };
  });
  const handler: Handler = async (request) => {
    parseQuery(request.query, []);
    const { content, etag } = await contentWithTag();
    return bytes(200, content, {
      'content-type': type,
      'content-security-policy': POLICY,
      'cache-control': 'no-cache',
      etag,
    });
  };
  const [media = ''] = type.split(';');
  const doc: Operation = {
    id,
    tag: 'Server',
    open: true,
    summary,
    headers: ['If-None-Match'],
    answers: {
      200: {
        description: 'As it was built with the server',
        headers: ['ETag', 'Cache-Control'],
        content: { [media]: { schema: { type: 'string' } } },
      },
      304: { description: 'It is the one that If-None-Match names', headers: ['ETag'] },
    },
    problems: ['invalid-header', 'precondition-failed'],
  };
  return { doc, handler };
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}
