import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { asset } from '../asset.ts';
import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, type Route } from '../http/route.ts';
import { serializerOf } from '../rows/serializers.ts';
import { count, listOf, namedObject, object, text } from '../base/schema.ts';
import { VERSION } from '../base/version.ts';
import { fileRoute } from './file-route.ts';

/** What a client is for. The build makes the files. */
const CLIENTS = [
  {
    name: 'sluice-pull.mjs',
    type: 'text/javascript; charset=utf-8',
    id: 'getPullClient',
    summary: 'Get the program that pulls a set into a file',
    use: 'Node.js 20.19 or newer: `node sluice-pull.mjs URL -o FILE`. Resumes after lost connections, and proves that the file is whole. `--into FILE.sqlite` needs Node.js 22.16.',
  },
  {
    name: 'sluice.mjs',
    type: 'text/javascript; charset=utf-8',
    id: 'getJavaScriptClient',
    summary: 'Get the JavaScript client as a module',
    use: "Browsers and Node.js 20.19 or newer: `import { rows, follow } from './sluice.mjs'`. Reads whole sets and follows their changes, resumes after lost connections, and proves what it gives.",
  },
  {
    name: 'sluice.d.ts',
    type: 'text/plain; charset=utf-8',
    id: 'getJavaScriptTypes',
    summary: 'Get the types of the JavaScript client',
    use: 'TypeScript: save it as `sluice.d.mts` beside `sluice.mjs`. `rows<Order>(url)` gives rows of a type, which `sluice types URL` writes.',
  },
  {
    name: `sluice_client-${VERSION}-py3-none-any.whl`,
    type: 'application/zip',
    id: 'getPythonClient',
    summary: 'Get the Python client as a wheel',
    use: 'Python 3.10 or newer: `pip install URL`, then `import sluice_client as sluice`.',
  },
] as const;

/** How long a cache may keep a client. Another version of the server may have another one under the same name. */
const CACHE_CONTROL = 'public, max-age=3600';

const LIST = namedObject('Clients', 'the clients that this server hands out', {
  version: text('the version of the server, and of its clients'),
  clients: listOf(
    'the clients',
    object('a client', {
      name: text('the name of the file'),
      url: text('its path on this server'),
      bytes: count('its length'),
      sha256: text('its SHA-256 digest in hexadecimal digits'),
      use: text('what it needs, and how it is used'),
    }),
  ),
});
const serialize = serializerOf(LIST);

/** GET /clients/{name} of each client, and GET /clients, which lists them. They need no key. */
export function clientRoutes(): { readonly list: Route; readonly files: readonly Route[] } {
  const clients = CLIENTS.map((client) => {
    const content = readFileSync(asset(`web/clients/${client.name}`));
    return { ...client, content, sha256: createHash('sha256').update(content).digest('hex') };
  });
  const listed = clients.map(({ name, content, sha256, use }) => {
    return { name, url: `/clients/${name}`, bytes: content.length, sha256, use };
  });
  const listAt = (mount: string) =>
    serialize({
      version: VERSION,
      clients: listed.map((one) => ({ ...one, url: mount + one.url })),
    });
  return {
    list: {
      method: 'GET',
      path: '/clients',
      access: 'open',
      cost: 'page',
      right: 'any',
      id: 'listClients',
      tag: 'Server',
      summary: 'List the clients that this server hands out',
      produces: [JSON_TYPE],
      answers: { 200: jsonAnswer('The clients', LIST, ['Cache-Control']) },
      handler: ({ request }) => json(200, listAt(request.notes.mount), { 'cache-control': CACHE_CONTROL }),
    },
    files: clients.map(({ name, type, id, summary, use, content }) =>
      fileRoute({
        path: `/clients/${name}`,
        id,
        summary,
        description: use,
        type,
        cache: CACHE_CONTROL,
        read: () => Promise.resolve(content),
      }),
    ),
  };
}
