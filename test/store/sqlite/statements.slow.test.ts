/** Each statement of the embedded store is answered by an index, without sorting. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { childServer } from '../../support/process/child-server.ts';
import { sluice } from '../../support/process/commands.ts';
import { temporaryFolder } from '../../support/directory.ts';

const SCHEMA = 'the schema has a row for each table and index';
const SORT = 'a load whose rows did not come in order sorts them once, in a thread';
const TWICE = 'a load names the rows whose id came twice, only when there are some';
/** Statements that go through a whole table, or sort, and why they may. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'select name from sqlite_schema limit 1': SCHEMA,
  'select 1 from sqlite_schema limit 1': SCHEMA,
  'select 1 from sqlite_schema where name = ?': SCHEMA,
  "select name from sqlite_schema where type = 'table'": SCHEMA,
  'select name, record from sets order by name':
    'there is a row for each set, and all are asked for, in the order of the key',
  'select at from lN order by rowid limit 1': 'the first row in the order of the key',
  'insert into sN(k,d,iN...) select k,d,iN... from (select k,d,iN..., max(n) from sN group by k)': SORT,
  'insert into sN(k,d,iN...) select k,d,iN... from (select k,d,iN..., min(n) from sN group by k)': SORT,
  'select count(*) rows from sN': SORT,
  'select n from (select n, row_number() over (partition by k order by n desc) place from sN) where place > 1 order by n':
    TWICE,
  'select n from (select n, row_number() over (partition by k order by n asc) place from sN) where place > 1 order by n':
    TWICE,
};

/** A step that goes through a whole table or sorts. A scan of a sub-select or of values reads what those give. */
const COSTLY = /^SCAN (?!\(subquery|CONSTANT|\d+-ROW VALUES)|TEMP B-TREE/;

const QUERIES = {
  items: [
    ...['?limit=3', '?limit=3&offset=2&count=exact', '?sort=price_desc', '?sort=price_asc&count=exact'],
    ...['?category=a&count=exact', '?category=a&sort=price_desc', '?min_price=1&max_price=3&sort=price_asc'],
    ...['/stream', '/stream?sort=price_desc', '/stream?format=arrow', '/partitions?n=3', '/changes', '/1'],
  ],
  orders: [
    ...['?limit=3', '?limit=3&offset=2&count=exact', '?sort=price_desc', '?sort=price_asc&count=exact'],
    ...[
      '?category=a&count=exact',
      '?category=a&sort=price_desc',
      '?price.gte=1&price.lte=3&sort=price_asc',
      '?_id=1&category=a',
    ],
    ...['/stream', '/stream?sort=price_desc', '/stream?format=arrow', '/partitions?n=3', '/changes', '/1'],
    '/values?field=category',
  ],
} as const;

test('each statement is answered by an index, but for those that are named here', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const other = await temporaryFolder(t);
  const STATEMENTS = join(other, 'statements');
  const preload = new URL('../../support/store/sqlite/statements.mjs', import.meta.url).href;
  const settings = { DATA_DIR, STATEMENTS, MONGODB_URI: '', NODE_OPTIONS: `--import=${preload}` };
  const run = async (...args: string[]): Promise<void> => {
    const { code, said } = await sluice(args, settings);
    assert.equal(code, 0, `${args.join(' ')}: ${said}`);
  };
  const unsorted = join(other, 'unsorted.csv');
  const sorted = join(other, 'sorted.csv');
  const csv = (ids: number[]) =>
    `_id,category,price\n${ids.map((id) => `${id},${'abc'[id % 3]},${id / 4}\n`).join('')}`;
  await writeFile(unsorted, csv([5, 3, 9, 3, 1]));
  await writeFile(sorted, csv([1, 2, 3, 4, 5, 6]));
  await run('import', unsorted, '--into', 'items', '--on-conflict', 'replace');
  await run('import', sorted, '--into', 'items', '--on-conflict', 'replace');
  await run('import', unsorted, '--into', 'items', '--drop', '--yes', '--on-conflict', 'skip');
  await run('import', sorted, '--into', 'orders', '--index', 'price', '--index', 'category');
  await run('index', 'orders', 'category,price');

  const server = await childServer(t, settings);
  const ask = async (path: string, init: RequestInit = {}): Promise<string> => {
    const answer = await fetch(new URL(path, server.url), init);
    const text = await answer.text();
    assert.ok(answer.status < 300, `${path}: ${answer.status} ${text}`);
    return text;
  };
  for (const [set, queries] of Object.entries(QUERIES))
    for (const query of queries) await ask(`/${set}${query}`);
  const cursor = /"cursor":"([^"]+)"/.exec(await ask('/orders/changes'))?.[1] ?? '';
  await run('import', unsorted, '--into', 'orders', '--on-conflict', 'replace');
  await ask(`/orders/changes?since=${cursor}`);
  const headers = { 'content-type': 'application/json' };
  for (const method of ['PUT', 'PUT', 'PATCH'])
    await ask('/api/users/ada', { method, headers, body: '{"name":"Ada","email":"a@b.example"}' });
  await ask('/api/users');
  await ask('/api/users/ada', { method: 'DELETE' });
  const order = JSON.parse(
    await ask('/exports', { method: 'POST', headers, body: '{"resource":"orders"}' }),
  ) as {
    id: string;
  };
  while (!(await ask(`/exports/${order.id}`)).includes('"complete"'));
  await ask(`/exports/${order.id}`, { method: 'DELETE' });
  await run('backup', join(other, 'backup.db'));
  await run('check');
  assert.equal(await server.end('SIGTERM'), 0);

  const statements = new Map(
    (await readFile(STATEMENTS, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as [string, string[]]),
  );
  assert.ok(statements.size > 40, `${statements.size} statements`);
  const costly = [...statements].filter(([, steps]) => steps.some((step) => COSTLY.test(step)));
  const unnamed = costly.filter(([sql]) => !Object.hasOwn(EXCEPTIONS, sql));
  assert.deepEqual(unnamed, []);
  const unneeded = Object.keys(EXCEPTIONS).filter((sql) => !costly.some(([one]) => one === sql));
  assert.deepEqual(unneeded, [], 'each exception is needed');
  t.diagnostic(`${statements.size} statements, ${costly.length} exceptions`);
});
