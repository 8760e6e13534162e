import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { storeUnfit } from '../../src/base/errors.ts';
import type { Route } from '../../src/http/route.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { logTo } from '../support/access/log-lines.ts';
import { onCombinations } from '../support/process/each-server.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { withOverrides } from '../support/store/with-overrides.ts';

/** What only the operator and the keys may read. Each name of the world of this test begins so. */
const CANARY = /canary\w+/gi;

/** What the store says of its health: everything is well, some reads fail, or none works. */
const HEALTH = {
  well: () => Promise.resolve([]),
  some: () =>
    Promise.resolve([
      'an index on canaryfield is missing: run db.getCollection("canarycollection").createIndex',
    ]),
  unfit: () =>
    Promise.reject(storeUnfit('The collection canarycollection of canarydatabase has no index canaryfield')),
  bug: () => Promise.reject(new Error('canarybug in /canarypath')),
} as const;

const HEADERS: readonly Record<string, string>[] = [
  {},
  { authorization: 'Bearer wrong' },
  { 'access-control-request-method': 'GET', origin: 'https://a.example' },
  { accept: 'image/png', 'if-none-match': '*', prefer: 'respond-async' },
];

onCombinations(
  async (t, { store, engine }) => {
    let health: keyof typeof HEALTH = 'well';
    let routes: readonly Route[] = [];
    const lines: string[] = [];
    const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
    const server = await keyedServer(
      t,
      store,
      [
        { name: 'all' },
        { name: 'less', resources: ['items'], actions: ['read'] },
        { name: 'sees', resources: ['items'], actions: ['metrics'] },
      ],
      [
        {
          name: 'canaryorders',
          rows: [{ _id: 'canaryrow', canaryfield: 'canaryvalue' }],
          indexes: [['canaryfield']],
        },
      ],
      {
        RESOURCES_FILE,
        HTTP_ENGINE: engine,
        ALLOWED_HOSTS: 'canaryhost',
        CORS_ORIGIN: '*',
        MONGODB_PREFIX: 'canaryprefix',
      },
      {
        log: logTo(lines),
        tap: (serve, all) => ((routes = all()), serve),
        tapStore: (real) => withOverrides(real, { ping: () => HEALTH[health]() }),
      },
    );
    if (!server) return null;
    return {
      server,
      lines,
      routes: () => routes,
      file: RESOURCES_FILE,
      be: (next: keyof typeof HEALTH) => (health = next),
    };
  },
  (test) => {
    test('no answer without a key names a resource, collection, file or value of a setting, whatever is wrong', async ({
      server,
      lines,
      routes,
      file,
      be,
    }) => {
      const own = routes().filter(({ path }) => !/^\/(docs|explorer|clients)\/./.test(path)); // other than files of the build
      const paths = [...new Set(own.map(({ path }) => path)), '/none', '/canaryother/x', '/', '/metrics/'];
      const statuses = new Set<number>();
      const look = async (state: string) => {
        for (const path of paths)
          for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
            for (const headers of HEADERS) {
              const url = path.replaceAll(/\{\w+\}/g, 'x');
              const answer = await fetch(server.url + url, {
                method,
                headers: { 'content-type': 'application/json', ...headers },
                ...(method.startsWith('P') && { body: '{}' }),
              });
              statuses.add(answer.status);
              const text = `${JSON.stringify([...answer.headers])}${await answer.text()}`.replaceAll(
                file,
                'canaryfile',
              );
              const told = (text.match(CANARY) ?? []).filter((name) => !url.includes(name));
              assert.deepEqual(told, [], `${state}: ${method} ${url} ${JSON.stringify(headers)}`);
            }
      };
      await look('well');
      await writeFile(file, '{"resources":{"items":{},"canarygone":{"canarymember":1}}}');
      assert.equal(await server.reload(), false);
      const reasonsOf = async (path: string, name?: string) => {
        const asked = name === undefined ? server.get(path) : server.as(name, path);
        const { reasons } = (await (await asked).json()) as { readonly reasons: readonly string[] };
        return reasons.join('\n');
      };
      for (const [state, kind, told] of [
        ['some', /^Store cannot be read reliably\ndeclarations with faults$/, /canaryfield[^]*canarygone/],
        ['unfit', /^Store cannot be read reliably$/, /canarycollection/],
        ['bug', /^Store unavailable$/, /did not respond/],
      ] as const) {
        be(state);
        if (state === 'some') await look(state);
        assert.match(await reasonsOf('/readyz'), kind);
        assert.match(await reasonsOf('/readyz', 'less'), kind);
        assert.match(await reasonsOf('/readyz', 'nobody'), kind);
        assert.match(await reasonsOf('/readyz', 'all'), told);
        assert.match(await reasonsOf('/readyz', 'sees'), told);
        assert.equal(
          lines.filter((line) => /canarycollection|canarybug/.test(line)).length > 0,
          true,
          'the log says it',
        );
      }
      for (const status of [200, 204, 401, 404])
        assert.ok(statuses.has(status), `${status} was among the answers`);
    });
  },
);
