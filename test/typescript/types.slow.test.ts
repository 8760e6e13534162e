import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { temporaryFolder } from '../support/directory.ts';
import { sluice } from '../support/process/commands.ts';
import { ordersOf } from '../support/resources/orders.ts';
import { Decimal128 } from '../../src/store/values/bson.ts';
import { shared } from '../support/tests-with.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const OPENAPI_TYPESCRIPT = join(ROOT, 'node_modules/openapi-typescript/bin/cli.js');

const LINES = Array.from({ length: 20 }, (_, n) => ({
  _id: n,
  price: Decimal128.fromString('9.90'),
  'not a name': n % 2 === 0 ? null : 'x',
  tags: n % 2 === 0 ? ['a', 7] : [],
  parts: [{ sku: 'x', at: new Date(0) }],
  class: true,
}));
const RESOURCES = [
  { name: 'orders', rows: ordersOf(60), indexes: [] },
  { name: 'order-lines', rows: LINES, indexes: [] },
];
const KEYS = [
  { name: 'all' },
  { name: 'blind', resources: ['orders'], hide: { orders: ['customer.card', 'note'] } },
];

const opened = shared((t) => keyedServer(t, 'sqlite', KEYS, RESOURCES));

/** A folder with the client that the server hands out, its types, and the keys of the server's users. */
async function setting(t: TestContext) {
  const server = (await opened(t)) ?? assert.fail();
  const folder = await temporaryFolder(t);
  const place = (name: string) => join(folder, name);
  for (const name of ['all', 'blind'])
    await writeFile(place(`${name}.key`), `${bearer(name).authorization.slice('Bearer '.length)}\n`);
  for (const [from, to] of [
    ['sluice.mjs', 'sluice.mjs'],
    ['sluice.d.ts', 'sluice.d.mts'],
  ] as const)
    await writeFile(place(to), await (await server.get(`/clients/${from}`)).text());
  const types = (name: string, ...more: readonly string[]) =>
    sluice(['types', ...(more.length === 0 ? [server.url] : more), '--key-file', place(`${name}.key`)], {});
  return { server, place, types };
}

/** Compiles a module as a user with strict settings does. Rejects with what the compiler says. */
async function compile(folder: string, file: string): Promise<void> {
  const options = [
    '--noEmit',
    '--strict',
    '--target',
    'es2023',
    '--module',
    'nodenext',
    '--skipLibCheck',
    '--types',
    'node',
  ];
  const roots = ['--typeRoots', join(ROOT, 'node_modules/@types')];
  await run(process.execPath, [TSC, ...options, ...roots, file], { cwd: folder }).catch((error: unknown) => {
    assert.fail((error as { stdout: string }).stdout);
  });
}

const PROGRAM = `
import { rows, follow } from './sluice.mjs';
import type { OrderLines, Orders } from './shop.ts';

export async function read(url: string): Promise<number> {
  let sum = 0;
  for await (const order of rows<Orders>(url, { key: 'x' })) {
    const id: string = order.id;
    sum += (order.total ?? 0) + id.length + (order.customer?.country?.length ?? 0);
    const ref: number | string | undefined = order.ref;
    // @ts-expect-error There is no such field.
    order.totl;
    // @ts-expect-error It may be missing.
    order.total.toFixed();
    void ref;
  }
  for await (const { changes } of follow<OrderLines>(url))
    for (const { row } of changes) {
      const name: string | null | undefined = row?.['not a name'];
      const tags: (string | number)[] | undefined = row?.tags;
      const at: string | undefined = row?.parts?.[0]?.at;
      sum += (row?.price ?? 0) + (name?.length ?? 0) + (tags?.length ?? 0) + (at?.length ?? 0) + Number(row?.class);
    }
  return sum;
}
`;

test('a program over the types of a server compiles, and one with a wrong field does not', async (t) => {
  const { place, types } = await setting(t);
  const made = await types('all');
  assert.equal(made.code, 0, made.said);
  await writeFile(place('shop.ts'), made.stdout);
  await writeFile(place('program.ts'), PROGRAM);
  await compile(place('.'), 'program.ts');
});

test('openapi-typescript makes types of the document that have the fields of rows', async (t) => {
  const { server, place } = await setting(t);
  await writeFile(place('openapi.json'), await (await server.as('all', '/openapi.json')).text());
  await run(process.execPath, [OPENAPI_TYPESCRIPT, place('openapi.json'), '-o', place('made.ts')]);
  const program = `
import type { components, paths } from './made.ts';
type Page = paths['/orders']['get']['responses'][200]['content']['application/json'];
export const country = (page: Page): string | undefined => page.data[0]?.customer?.country;
export const id = (row: components['schemas']['Row_orders']): string => row.id;
// @ts-expect-error Of what a row may have beside its fields, nothing is known.
export const other = (row: components['schemas']['Row_orders']): string => row.totl;
`;
  await writeFile(place('program.ts'), program);
  await compile(place('.'), 'program.ts');
});

test('--check fails with the first difference once the rows are others, or the key sees others', async (t) => {
  const { place, types, server } = await setting(t);
  const url = `${server.url}/orders`;
  const made = await types('all', url);
  assert.match(made.stdout, /^export interface Orders \{$/m);
  assert.doesNotMatch(made.stdout, /OrderLines/);
  const file = place('shop.ts');
  await writeFile(file, made.stdout);
  const same = await types('all', url, '--check', file);
  assert.deepEqual([same.code, same.said], [0, '']);
  const blind = await types('blind', url, '--check', file);
  assert.equal(blind.code, 1);
  assert.equal(
    blind.said,
    `sluice: ${file} is stale: in Orders it has "card?: string;", and the server has "};"\n`,
  );
  assert.equal(await readFile(file, 'utf8'), made.stdout);
  const missing = await types('all', url, '--check', place('none.ts'));
  assert.equal(missing.code, 1);
  assert.match(missing.said, /^sluice: .*none\.ts cannot be read: /);
});

test('what is no resource of the key, and no server, is refused by name', async (t) => {
  const { types, server } = await setting(t);
  const nope = await types('blind', `${server.url}/order-lines`);
  assert.deepEqual(
    [nope.code, nope.said],
    [1, 'sluice: the server has no resource order-lines for this key; it has orders\n'],
  );
  const keyless = await sluice(['types', server.url], {});
  assert.deepEqual(
    [keyless.code, keyless.said],
    [1, 'sluice: the server describes no rows: it serves none, or wants a key (--key-file FILE)\n'],
  );
  assert.equal((await sluice(['types', 'nonsense'], {})).code, 2);
});
