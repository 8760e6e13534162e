import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { asset } from '../asset.ts';
import { AppError } from '../errors.ts';
import { bytes } from '../http/reply.ts';
import type { Route } from '../http/route.ts';
import { VERSION } from '../version.ts';
import { fileRoute } from './file-route.ts';

/** All files of the explorer page, which the build makes, and where they are. Nothing comes from other hosts. */
const FILES: Readonly<Record<string, URL>> = {
  'explorer.js': asset('web/explorer.js'),
  'style.css': asset('web/style.css'),
  'icon.svg': asset('web/page/icon.svg'),
};

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** The page sends requests to this server alone, runs no inline script or style, and cannot be framed. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

const HTML = 'text/html; charset=utf-8';

/**
 * GET /: the explorer page, for people who would rather look than read. The path of its files changes with their
 * content, so that browsers can cache them permanently. `formats`: those of exports.
 */
export function webRoutes(formats: readonly string[]) {
  const files = new Map(Object.entries(FILES).map(([name, path]) => [name, readFileSync(path)]));
  const version = tagOf(...files.values());
  const assets = `/explorer/${version}`;
  const template = readFileSync(asset('web/page/index.html'), 'utf8');
  const options = formats.map((name) => `<option>${name}</option>`).join('');
  const page = Buffer.from(
    template.replaceAll('{assets}', assets).replace('{version}', VERSION).replace('{formats}', options),
  );
  return { page: pageRoute(page), file: assetRoute(assets, version, files) } satisfies Record<string, Route>;
}

function pageRoute(page: Uint8Array): Route {
  const etag = `"${tagOf(page)}"`;
  return fileRoute('The page in HTML', ['text/html'], {
    path: '/',
    right: 'any',
    id: 'getExplorer',
    summary: 'Get the explorer page',
    description:
      'A web page that shows the rows of every resource, gets all of them, and proves a stream. It needs no key: it asks for one, and its requests carry it.',
    produces: ['text/html'],
    handler: () =>
      bytes(200, page, {
        'content-type': HTML,
        'content-security-policy': POLICY,
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
        etag,
      }),
  });
}

function assetRoute(assets: string, version: string, files: ReadonlyMap<string, Uint8Array>): Route {
  const media = Object.values(TYPES).map((type) => type.replace(/;.*/, ''));
  return fileRoute('The content of the file', media, {
    path: `${assets}/{file}`,
    right: 'any',
    id: 'getExplorerFile',
    summary: 'Get a file of the explorer page',
    description: 'The path contains a hash of all these files, so it changes when one of them changes.',
    parameters: {
      file: {
        type: 'string',
        enum: [...files.keys()],
        description: 'the name of the file',
        examples: ['style.css'],
      },
    },
    problems: ['not-found', 'invalid-url', 'invalid-header', 'precondition-failed'],
    handler: ({ parameters: { file = '' } }) => {
      const content = files.get(file);
      if (!content) throw new AppError('not-found', `The explorer page has no file ${JSON.stringify(file)}.`);
      return bytes(200, content, {
        'content-type': TYPES[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
        'cache-control': 'public, max-age=31536000, immutable',
        etag: `"${version}"`,
      });
    },
  });
}

function tagOf(...contents: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const content of contents) hash.update(content);
  return hash.digest('hex').slice(0, 16);
}
