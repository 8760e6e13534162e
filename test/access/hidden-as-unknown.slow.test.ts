import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileOf } from '../support/exports/exports.ts';
import { bearer, keyedServer, type KeyGiven, type KeyedServer, type Rows } from '../support/access/keyed.ts';
import { keepImages } from '../support/store/parts.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import type { StoreName } from '../support/process/server.ts';

const rowOf = (n: number) => ({
  _id: `r${String(n).padStart(3, '0')}`,
  tenant: n % 2 ? 'acme' : 'other',
  total: n,
  margin: n,
  stocks: new Date(n),
  'dot.ted': n,
  deep: { secret: n % 3 === 0, kept: n },
  list: [{ inside: n }],
  operator: n + 0.5,
  ...(n === 5 && { late: 'x' }),
});
const ORDERS: Rows = {
  name: 'orders',
  rows: Array.from({ length: 60 }, (_, n) => rowOf(n)),
  indexes: [['tenant'], ['tenant', 'total'], ['total'], ['margin'], ['tenant', 'margin'], ['operator']],
};
const RESOURCE = {
  collection: 'orders',
  hide: ['operator'],
  fields: { margin: 'number', stocks: 'date', nowhere: 'uuid', operator: 'number' },
};
const HIDE = ['margin', 'stocks', 'nowhere', 'dot.ted', 'deep.secret', 'list.inside', 'late'];
const KEYS: readonly KeyGiven[] = [
  { name: 'acme', where: { orders: { tenant: 'acme' } }, hide: { orders: HIDE } },
  { name: 'hides', hide: { orders: HIDE } },
  // Does not know by what its rows are chosen.
  { name: 'blind', where: { orders: { tenant: 'acme' } }, hide: { orders: ['tenant'] } },
  { name: 'all' },
];

/** Each hidden path, and one that no row has, of the same length, so that equal answers are equally long. */
const PAIRS = [...HIDE, 'operator', 'operator.below', 'margin.below', 'tenant'].map(
  (path) => [path, path.replace(/[a-z]+$/, (name) => 'q'.repeat(name.length))] as const,
);

type Pair = (typeof PAIRS)[number];

/** The paths to try with each key, and those to order exports of. */
const PATHS_OF: Readonly<Record<string, RegExp>> = {
  acme: /^(?!tenant)/,
  hides: /^(margin|deep)/,
  blind: /^tenant/,
  all: /^operator$/,
};
const EXPORTED = /^(margin|nowhere|deep.secret|operator)$/;

/** Ways to ask for a field F, alone and narrowed to one row that has it. */
const GETS = [
  ...['', '&total=5'].flatMap((rows) => [
    ...['ndjson', 'json', 'csv', 'arrow'].map((format) => `/orders/stream?format=${format}&fields=F${rows}`),
    `/orders/stream?format=arrow&fields=total,F${rows}`,
    `/orders/stream?format=arrow&schema=strict&fields=F&columns=id:text,F:integer${rows}`,
    `/orders/stream?format=ndjson&checkpoints=true&fields=F${rows}`,
    `/orders?fields=F${rows}`,
  ]),
  '/orders/partitions?n=2&format=arrow&fields=F',
  '/orders/partitions?n=2&format=arrow&fields=F,total',
  '/orders/stream?format=arrow&fields=F&after=r005',
  '/orders/r005?fields=F',
  '/orders/values?field=F',
  '/orders/values?field=total&F=1',
  '/orders/stream?sort=F_asc',
  '/orders/changes?fields=F&follow=false',
  '/orders/changes?F=1',
  '/orders/stream?F=1',
  '/orders/partitions?F=1',
  ...[
    'F=1',
    'F.eq=x',
    'F=int:x',
    'F=null:',
    'F=2026-01-01',
    'F.gte=1',
    'F.lt=x',
    'F=1&F.gte=2',
    'F=1&F=2',
  ].map((asked) => `/orders?${asked}`),
  ...['sort=F_asc', 'total=5&F=1', 'total=5&sort=F_desc', 'sort=total_asc&F=1', 'total.gte=1&F.lt=2'].map(
    (asked) => `/orders?${asked}`,
  ),
];
const ORDERED = [
  { format: 'arrow', fields: ['total', 'F'], total: 5 },
  { format: 'csv', fields: ['F'] },
];

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${store}: every answer about a hidden field equals that about an unknown one`, async (t) => {
    const file = await resourcesFile(t, { resources: { orders: RESOURCE } });
    const server = await keyedServer(t, store, KEYS, [ORDERS], {
      RESOURCES_FILE: file,
      EXPOSE: '',
      EXPORT_LIMIT: '1000',
    });
    if (!server) return;
    await keepImages(t, server.mongo, 'orders');
    for (const { name } of KEYS)
      await t.test(name, async () => {
        const hidden = PAIRS.filter(([path]) => PATHS_OF[name]?.test(path));
        const differences: string[] = [];
        const compare = async (what: string, ask: (path: string) => Promise<string>, pair: Pair) => {
          const [answer = '', expected = ''] = await Promise.all(pair.map(ask));
          differences.push(...difference(`${pair[0]} ${what}`, answer, expected));
        };
        for (const pair of hidden) {
          for (const way of GETS) await compare(way, (path) => get(server, name, way, path), pair);
          for (const wanted of EXPORTED.test(pair[0]) ? ORDERED : [])
            await compare(JSON.stringify(wanted), (path) => exported(server, name, wanted, path), pair);
        }
        for (const way of ['/resources', '/openapi.json']) {
          const text = await (await server.as(name, way)).text();
          differences.push(
            ...hidden.filter(([path]) => text.includes(`"${path}`)).map(([path]) => `${way} has ${path}`),
          );
        }
        assert.deepEqual(differences, []);
      });
  });

/** Where an answer about a hidden field begins to differ from that about an unknown one. Empty: nowhere. */
function difference(of: string, hidden: string, unknown: string): readonly string[] {
  if (hidden === unknown) return [];
  const at = Array.from(hidden).findIndex((sign, n) => sign !== unknown[n]);
  const [one, other] = [hidden, unknown].map((text) =>
    JSON.stringify(text.slice(Math.max(0, at - 40), at + 80)),
  );
  return [`${of}: ${one}, unknown: ${other}`];
}

async function get(server: KeyedServer, name: string, way: string, path: string): Promise<string> {
  try {
    const answer = await server.as(name, way.replaceAll('F', path), { headers: { 'x-request-id': 'same' } });
    const headers = [...answer.headers].filter(([header]) => !/^(date|ratelimit)$/.test(header));
    const text = Buffer.from(await answer.arrayBuffer()).toString('latin1');
    return comparable(`${answer.status} ${JSON.stringify(headers)}\n${text}`, path);
  } catch (error) {
    assert.ok(error instanceof TypeError && way.includes('strict'), String(error));
    return 'cut at a value that fits no column'; // of the array on the way to list.inside
  }
}

async function exported(server: KeyedServer, name: string, wanted: object, path: string): Promise<string> {
  const body = JSON.parse(JSON.stringify({ resource: 'orders', ...wanted }).replaceAll('F', path)) as object;
  const done = await server.exported(name, body);
  const text = (await fileOf(server.url, done, bearer(name))).toString('latin1');
  return comparable(`${done.file?.rows} ${done.file?.bytes} ${text}`, path);
}

/** A text without what differs between two equal requests: the name itself, tokens, which contain times, and a sum over the name. */
function comparable(text: string, path: string): string {
  return text
    .replaceAll(path, 'F')
    .replace(/[\w-]{24,}/g, 'TOKEN')
    .replace(/"crc32":"\w+"/g, 'CRC');
}
