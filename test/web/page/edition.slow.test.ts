import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { keyedServer } from '../../support/access/keyed.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { itemEditions } from '../../support/editions/edition-server.ts';
import { program } from '../../support/process/programs.ts';
import { resourcesFile } from '../../support/resources/resources.ts';
import { until } from '../../support/store/changes.ts';
import { openChromium, openTab, type Tab } from '../../support/web/chromium.ts';
import { said } from '../../support/web/explorer.ts';

const run = promisify(execFile);

/** A tab with the panel `Get all of it` of a resource. `before`: what is done to the page before it loads. */
async function panelOf(
  t: TestContext,
  place: string,
  before: (page: Tab['page']) => Promise<unknown> = () => Promise.resolve(),
): Promise<Tab | null> {
  const browser = await openChromium(t);
  if (!browser) return null;
  const tab = await openTab(browser, { locale: 'en-GB' });
  t.after(() => tab.page.close());
  await before(tab.page);
  await tab.page.goto(place);
  await tab.page.waitForSelector('body[data-ready]');
  await tab.page.getByRole('button', { name: 'Get all of it' }).click();
  return tab;
}

test('the page of a resource says which edition there is, with commands that read it', async (t) => {
  const at = await itemEditions(t, 'sqlite', { formats: ['ndjson.gz', 'parquet'] });
  const tab = await panelOf(t, `${at?.server.url}/#/items`);
  if (!at || !tab) return;
  const { page, errors } = tab;
  await said(
    page,
    '#edition-what',
    /^Of (now|\d+ seconds? ago|\d minutes? ago): 3,000 rows, \d+ kB as NDJSON\.$/,
  );
  const titles = await page.locator('#edition-programs label').allTextContents();
  assert.deepEqual(titles, ['sluice pull', 'mirror', 'curl', 'DuckDB']);
  const code = async (title: string): Promise<string> => {
    await page.locator('#edition-programs').getByText(title, { exact: true }).click();
    return (await page.textContent('#edition-code')) ?? '';
  };
  assert.match(await code('DuckDB'), /delta_scan/);
  const cwd = await temporaryFolder(t);
  const stream = await at.stream();
  const withJq = program(t, ['jq', '/usr/bin/jq'], ['--version']) !== null;
  for (const title of withJq ? ['sluice pull', 'curl'] : ['sluice pull']) {
    await run('sh', ['-c', await code(title)], { cwd });
    assert.ok((await readFile(join(cwd, 'items.ndjson'))).equals(stream), title);
  }
  await run('sh', ['-c', await code('mirror')], { cwd });
  assert.match(await readFile(join(cwd, 'items.edition/edition.json'), 'utf8'), /"rows":3000/);
  assert.deepEqual(errors, []);
});

test('the page follows the making of the first edition', async (t) => {
  const at = await itemEditions(t, 'sqlite');
  const detail = 'The first edition of items is being made: 1200 of about 3000 rows are read.';
  const tab = await panelOf(t, `${at?.server.url}/#/items`, (page) =>
    page.route('**/items/edition', (route) =>
      route.fulfill({
        status: 503,
        headers: { 'content-type': 'application/problem+json', 'retry-after': '5' },
        body: JSON.stringify({ status: 503, code: 'not-ready', detail }),
      }),
    ),
  );
  if (!tab) return;
  const { page } = tab;
  await said(page, '#edition-what', /1200 of about 3000 rows are read\.$/);
  assert.equal(await page.locator('#edition-commands').isVisible(), false);
  await page.unroute('**/items/edition');
  await said(page, '#edition-what', /3,000 rows/);
  assert.equal(await page.locator('#edition-commands').isVisible(), true);
});

test('only a key that opens a whole resource is shown its edition', async (t) => {
  const keys = [
    { name: 'all' },
    { name: 'reader', actions: ['read'] },
    { name: 'some', where: { orders: { tenant: 'acme' } } },
    { name: 'hidden', hide: { orders: ['total'] } },
  ];
  const rows = [
    { _id: 'a', tenant: 'acme', total: 1 },
    { _id: 'b', tenant: 'blue', total: 2 },
  ];
  const server = await keyedServer(t, 'sqlite', keys, [{ name: 'orders', rows, indexes: [['tenant']] }], {
    EDITIONS: 'orders',
  });
  const editionOf = async (name: string): Promise<unknown> => {
    const { resources } = (await (await server.as(name, '/resources')).json()) as {
      resources: { name: string; links: { edition?: string } }[];
    };
    return resources.find((one) => one.name === 'orders')?.links.edition;
  };
  assert.equal(await editionOf('all'), '/orders/edition');
  for (const name of ['reader', 'some', 'hidden']) assert.equal(await editionOf(name), undefined, name);
  await until('there is an edition', async () => (await server.as('all', '/orders/edition')).status === 200);
  for (const [name, isShown] of [
    ['all', true],
    ['hidden', false],
  ] as const) {
    const tab = await panelOf(t, `${server.url}/#/orders`, (page) =>
      page.addInitScript(`sessionStorage.setItem('sluice-key', 'secret-of-${name}')`),
    );
    if (!tab) return;
    if (isShown) {
      await said(tab.page, '#edition-what', /2 rows/);
      assert.match((await tab.page.textContent('#edition-code')) ?? '', /--key-file FILE_WITH_KEY/);
    }
    assert.equal(await tab.page.locator('#take-edition').isVisible(), isShown, name);
  }
});

test('a key that opens a part of a public resource is shown its edition, and one that may only read is, too', async (t) => {
  const keys = [
    { name: 'reader', actions: ['read'] },
    { name: 'some', where: { items: { category: 'a' } } },
  ];
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: { editions: {}, public: true } } });
  const server = await keyedServer(t, 'sqlite', keys, [], { RESOURCES_FILE });
  await server.insert([
    { _id: 'a', category: 'a', price: 1 },
    { _id: 'b', category: 'b', price: 2 },
  ]);
  await until('there is an edition', async () => (await server.as('some', '/items/edition')).status === 200);
  for (const { name } of keys) {
    const tab = await panelOf(t, `${server.url}/#/items`, (page) =>
      page.addInitScript(`sessionStorage.setItem('sluice-key', 'secret-of-${name}')`),
    );
    if (!tab) return;
    await said(tab.page, '#edition-what', /2 rows/);
    assert.deepEqual(tab.errors, []);
  }
});
