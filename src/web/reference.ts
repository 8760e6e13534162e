import { readFile } from 'node:fs/promises';
import { bytes } from '../http/reply.ts';
import type { Route } from '../http/route.ts';
import { fingerprint } from '../rows/fingerprint.ts';

/** Scalar's script. It is beside this file in the checkout and in the package. */
const BUNDLE = new URL('./scalar.js', import.meta.url);

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

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sluice: reference</title>
<link rel="icon" href="data:,">
<style>
  .back { display: block; padding: 0.5rem 1rem; font: 0.8125rem/1.5 system-ui, sans-serif; color: #0b57b8; background: #fff; }
  @media (prefers-color-scheme: dark) { .back { color: #82b4ff; background: #14171a; } }
  /* Scalar's own colours have too little contrast. */
  :root .light-mode {
    --scalar-color-2: #4f4f4f; --scalar-color-3: #5c5c5c; --scalar-color-blue: #005b9f; --scalar-color-green: #1c6b2f;
    --scalar-color-orange: #8a4500; --scalar-color-red: #b3132a; --scalar-color-purple: #5f3bb0; --scalar-color-yellow: #6b5200;
  }
  :root .dark-mode { --scalar-color-2: #b8b8b8; --scalar-color-3: #a6a6a6; --scalar-color-red: #ff8080; }
</style>
<nav><a class="back" href="/">\u2190 Explorer: look through the rows</a></nav>
<div id="reference"></div>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</html>
`;

/**
 * Every feature that would send requests to another host is off. Buttons that Scalar leaves without a name get one, and
 * lists that scroll can be reached by keyboard.
 */
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
const mend = () => {
  for (const button of document.querySelectorAll('button[class*="copy-button"]:not([aria-label])'))
    button.setAttribute('aria-label', 'Copy');
  for (const list of document.querySelectorAll('ul.endpoints:not([tabindex])')) list.tabIndex = 0;
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
`;

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** GET /docs: the reference page, which the browser renders from /openapi.json, and its two scripts. */
export function referenceRoutes() {
  return {
    page: file('/docs', HTML, 'Get the API reference page', 'getReference', () => Buffer.from(PAGE)),
    start: file(
      '/docs/start.js',
      SCRIPT,
      'Get the start script of the reference page',
      'getReferenceStart',
      () => Buffer.from(START),
    ),
    script: file(
      '/docs/scalar.js',
      SCRIPT,
      'Get the renderer script of the reference page',
      'getReferenceScript',
      () => readFile(BUNDLE),
    ),
  } satisfies Record<string, Route>;
}

function file(
  path: string,
  type: string,
  summary: string,
  id: string,
  read: () => Buffer | Promise<Buffer>,
): Route {
  const contentWithTag = lazily(async () => {
    const content = await read();
    return { content, etag: `"${fingerprint(content)}"` };
  });
  const [media = ''] = type.split(';');
  return {
    method: 'GET',
    path,
    access: 'open',
    cost: 'page',
    id,
    tag: 'Server',
    summary,
    headers: ['If-None-Match'],
    answers: {
      200: {
        description: 'The content of the file',
        headers: ['ETag', 'Cache-Control'],
        content: { [media]: { schema: { type: 'string' } } },
      },
      304: {
        description: 'The client already has this file: its ETag is in If-None-Match',
        headers: ['ETag'],
      },
    },
    problems: ['invalid-header', 'precondition-failed'],
    handler: async () => {
      const { content, etag } = await contentWithTag();
      return bytes(200, content, {
        'content-type': type,
        'content-security-policy': POLICY,
        'cache-control': 'no-cache',
        etag,
      });
    },
  };
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}
