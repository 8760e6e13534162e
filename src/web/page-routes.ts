import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { asset } from '../asset.ts';
import type { Route } from '../http/route.ts';
import { VERSION } from '../base/version.ts';
import { fileRoute } from './file-route.ts';

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** The pages send requests to this server alone, run no inline script, and cannot be framed. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
];
const OF_EXPLORER = [...POLICY, "style-src 'self'", "img-src 'self'"].join('; ');
/** Scalar sets styles from its script. */
const OF_REFERENCE = [
  ...POLICY,
  ...["style-src 'self' 'unsafe-inline'", "img-src 'self' data:", "font-src 'self' data:"],
].join('; ');

/** The files of the explorer page, which the build makes. Nothing comes from other hosts. */
const FILES = [
  ['web/explorer.js', SCRIPT, 'getExplorerScript', 'Get the script of the explorer page'],
  ['web/style.css', 'text/css; charset=utf-8', 'getExplorerStyles', 'Get the styles of the explorer page'],
  ['web/page/icon.svg', 'image/svg+xml', 'getExplorerIcon', 'Get the icon of the explorer page'],
] as const;

/** The explorer page and its files, whose paths change with their content. `formats`: those of exports. */
export function explorerRoutes(formats: readonly string[]): {
  readonly page: Route;
  readonly files: readonly Route[];
} {
  const contents = FILES.map(([name]) => readFileSync(asset(name)));
  const hash = createHash('sha256').update(Buffer.concat(contents)).digest('hex').slice(0, 16);
  const folder = `/explorer/${hash}`;
  const read = async () => {
    const template = await readFile(asset('web/page/index.html'), 'utf8');
    const options = formats.map((name) => `<option>${name}</option>`).join('');
    // Relative, so that the page needs no other one under a mount.
    const page = template.replaceAll('{assets}', folder.slice(1)).replace('{version}', VERSION);
    return Buffer.from(page.replace('{formats}', options));
  };
  return {
    page: fileRoute({
      path: '/',
      id: 'getExplorer',
      summary: 'Get the explorer page',
      produces: ['text/html'],
      description:
        'A web page that shows the rows of every resource, gets all of them, and proves a stream. It needs no key: it asks for one, and its requests carry it.',
      type: HTML,
      cache: 'no-cache',
      policy: OF_EXPLORER,
      read,
    }),
    files: FILES.map(([name, type, id, summary], n) =>
      fileRoute({
        path: folder + name.slice(name.lastIndexOf('/')),
        id,
        summary,
        type,
        description:
          'The path contains a hash of all files of the page, so it changes when one of them changes.',
        cache: 'public, max-age=31536000, immutable',
        read: () => Promise.resolve(contents[n] ?? Buffer.alloc(0)),
      }),
    ),
  };
}

/** GET /docs: the reference page, which the browser renders from /openapi.json with Scalar, and its two scripts. */
export function referenceRoutes() {
  const page = { cache: 'no-cache', policy: OF_REFERENCE };
  return {
    page: fileRoute({
      path: '/docs',
      id: 'getReference',
      summary: 'Get the API reference page',
      type: HTML,
      ...page,
      read: () => readFile(asset('web/reference/index.html')),
    }),
    start: fileRoute({
      path: '/docs/start.js',
      id: 'getReferenceStart',
      type: SCRIPT,
      ...page,
      summary: 'Get the start script of the reference page',
      read: () => readFile(asset('web/reference/start.js')),
    }),
    script: fileRoute({
      path: '/docs/scalar.js',
      id: 'getReferenceScript',
      type: SCRIPT,
      ...page,
      summary: 'Get the renderer script of the reference page',
      read: () => readFile(asset('web/scalar.js')),
    }),
  };
}
