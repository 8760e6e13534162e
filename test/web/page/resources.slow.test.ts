import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { explorer, said } from '../../support/web/explorer.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { program } from '../../support/process/programs.ts';
import { ordersOf, withOrders } from '../../support/resources/orders.ts';
import { resourcesFile } from '../../support/resources/resources.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';

const ROWS = ordersOf(300);
const run = promisify(execFile);

let server: TestServer;
async function start(whole: TestContext): Promise<TestServer> {
  const settings = await withOrders(whole, 'sqlite', ROWS);
  const RESOURCES_FILE = await resourcesFile(whole, { resources: { items: {} } });
  return (server = await serverOn(whole, { ...settings, RESOURCES_FILE }));
}

/** The ids of the first rows of the table, once the page has sent a request. */
async function idsShown(page: Page, request: RegExp, count = 10): Promise<string[]> {
  await said(page, '#request', request);
  await page.waitForSelector('#row-0:not(.coming)');
  const cells = Array.from({ length: count }, (_, n) =>
    page.locator(`#row-${n}`).getByRole('gridcell').first().textContent(),
  );
  return (await Promise.all(cells)).map((text) => text ?? '');
}

/** Where the numbers of the table have their points, or would have them, in pixels. */
async function pointsOf(page: Page): Promise<number[]> {
  return page.evaluate<number[]>(`[...document.querySelectorAll('.grid-body .cell.number')].map((cell) => {
    const range = document.createRange();
    const at = cell.textContent.search(/[.\\u2008]/);
    range.setStart(cell.firstChild, at < 0 ? cell.textContent.length : at);
    range.collapse(true);
    return range.getBoundingClientRect().left;
  })`);
}

async function idsOf(query: string): Promise<string[]> {
  const { data } = (await (await server.get(`/orders?${query}`)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

explorer(start, (test) => {
  test('offers the values of its indexes with their counts, and the filters together as an index has them', async (open) => {
    const tab = await open('#/orders', { locale: 'en-GB', timezoneId: 'Europe/Amsterdam' });
    const { page, errors } = tab;
    await said(page, '#data-count', /^300 rows$/);
    const facet = page.locator('.facet').filter({ hasText: 'status' }).first();
    await facet.getByRole('button', { name: /^paid ?100$/ }).waitFor();
    assert.deepEqual(await facet.locator('.value-text').allTextContents(), ['größe', 'new', 'paid'].sort());
    await facet.getByRole('button', { name: /^paid/ }).click();
    const ordered = 'status=paid&sort=createdAt_asc'; // the index orders them so, and not by id
    assert.deepEqual(
      await idsShown(page, /^GET \/orders\?status=paid&sort=createdAt_asc&limit=100 /),
      await idsOf(`${ordered}&limit=10`),
    );
    const range = page.getByRole('form', { name: 'Range of createdAt' });
    await range.getByLabel('from').fill('2026-01-10');
    await page.keyboard.press('Enter');
    const query = 'status=paid&createdAt.gte=2026-01-10&sort=createdAt_asc';
    assert.deepEqual(
      await idsShown(page, /status=paid&createdAt\.gte=2026-01-10&sort=createdAt_asc&limit=100 /),
      await idsOf(`${query}&limit=10`),
    );
    await page.getByRole('button', { name: 'createdAt', exact: true }).click();
    assert.deepEqual(
      await idsShown(page, /sort=createdAt_desc&limit=100 /),
      await idsOf(`${query.replace('asc', 'desc')}&limit=10`),
    );
    const dated = page.locator('#row-0 .cell.date');
    assert.equal(await dated.textContent(), '19 Feb 2026', 'midnight in UTC is a day');
    assert.deepEqual(errors, [], 'no error in the console');
  });

  test('says why no index orders a column, with the index that would', async (open) => {
    const { page } = await open('#/orders?status=paid');
    await idsShown(page, /status=paid/);
    await page.getByRole('button', { name: 'total', exact: true }).click();
    await said(page, '#warning', /^The rows cannot be ordered by total here\. No index answers this query\./);
    await said(page, '#warning', /sluice index orders status,total/);
    assert.equal(await page.getByRole('columnheader', { name: 'total' }).getAttribute('aria-sort'), null);
    await page.goto(`${server.url}/#/orders`);
    await page.getByRole('button', { name: 'createdAt', exact: true }).click();
    await said(
      page,
      '#warning',
      /^Filter by status first: an index orders the rows of one status by createdAt\.$/,
    );
    const look = (name: string) =>
      page.evaluate<string>(`(() => {
        const buttons = [...document.querySelectorAll('.grid-head button')];
        return getComputedStyle(buttons.find((one) => one.textContent === '${name}'), '::after').content;
      })()`);
    assert.notEqual(await look('id'), 'none', 'a column that can order has an arrow');
    assert.equal(await look('createdAt'), 'none');
    await page.goto(`${server.url}/#/orders?createdAt=2026-01-10`);
    await said(
      page,
      '#empty',
      /^Choose a value of status, too: the index answers createdAt and status only together\.$/,
    );
    await page.goto(`${server.url}/#/orders?status=none`);
    await said(page, '#empty', /^No row matches: status is none\.$/);
  });

  test('opens a row beside the table, with nested values and all its digits, by click and by keys', async (open) => {
    const { page } = await open('#/orders');
    await idsShown(page, /limit=100/);
    await page.getByRole('grid').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const detail = page.getByRole('complementary', { name: '000000000000000000000001' });
    await detail.getByText('card', { exact: true }).waitFor();
    assert.deepEqual(await detail.locator('details dd').allTextContents(), ['DE', 'secret1']);
    await detail.getByRole('button', { name: 'Next row' }).click();
    await page.getByRole('complementary', { name: '000000000000000000000002' }).waitFor();
    const link = page.getByRole('link', { name: 'Open as JSON' });
    assert.equal(await link.getAttribute('href'), '/orders/000000000000000000000002');
    await page.getByRole('button', { name: 'only these' }).first().click();
    await said(page, '#chips', /status is größe/);
    await page.locator('#detail').waitFor({ state: 'hidden' });
  });

  test('the programs that it offers read exactly the rows on the screen', async (open, t) => {
    const { page } = await open(
      '#/orders?status=gr%C3%B6%C3%9Fe&createdAt.gte=2026-01-10&sort=createdAt_desc',
    );
    await page.getByRole('button', { name: 'Get all of it' }).click();
    await said(page, '#take-what', /^The rows of orders where status is größe, createdAt from 2026-01-10\.$/);
    const path = '/orders/stream?status=gr%C3%B6%C3%9Fe&createdAt.gte=2026-01-10&sort=createdAt_desc';
    const expected = await (await server.get(path)).text();
    const code = async (title: string) => {
      await page.locator('#snippet-programs').getByText(title, { exact: true }).click();
      return (await page.textContent('#snippet-code')) ?? '';
    };
    const shell = (await code('curl')).replace('-o orders.ndjson', '');
    assert.equal((await run('sh', ['-c', shell])).stdout, expected, shell);
    const cwd = await temporaryFolder(t); // where the programs download the clients that they use
    const pull = (await code('sluice pull')).replace('-o orders.ndjson', '-o -');
    const pulled = await run('sh', ['-c', pull], { cwd });
    assert.equal(pulled.stdout, expected, pull);
    const module = await code('JavaScript');
    const [, download = ''] = /^\/\/ (.*)\n/.exec(module) ?? [];
    await run('sh', ['-c', download], { cwd });
    const source = module.replace('console.log(row)', 'console.log(row.id)');
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', source], { cwd });
    const rows = expected
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { id: string });
    const ids = rows.map(({ id }) => `${id}\n`).join('');
    assert.equal(stdout, ids, module);
    for (const title of ['polars', 'DuckDB'])
      assert.ok((await code(title)).includes(`sluice.rows('${server.url}${path}')`), title);
    const frames = await code('pandas');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.locator('#snippet-programs label:has(:checked)').textContent(), 'polars');
    const python = program(t, ['python3', '/usr/bin/python3'], ['-c', 'import pandas']);
    if (python === null) return;
    const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, '../../../clients/python/src') };
    const client = (await code('Python')).replace('print(row)', "print(row['id'])");
    const { clients } = (await (await server.get('/clients')).json()) as { clients: { url: string }[] };
    const wheel = clients.find(({ url }) => url.endsWith('.whl'))?.url;
    assert.ok(client.startsWith(`# pip install ${server.url}${wheel}\n`), client);
    assert.equal((await run(python, ['-c', client], { env })).stdout, ids, client);
    const counted = frames.replace('print(data)', 'print(len(data))');
    assert.equal((await run(python, ['-c', counted])).stdout, `${rows.length}\n`, frames);
  });

  test('marks what changes, appears and goes while Live is on', async (open) => {
    const { page } = await open('#/orders');
    await server.insert([
      { _id: 'a', category: 'x', price: 1.5 },
      { _id: 'b', category: 'x', price: 2 },
      { _id: 'c', category: 'x', price: 1030.25 },
    ]);
    await page.goto(`${server.url}/#/items`);
    await page.waitForSelector('#row-2:not(.coming)');
    const points = await pointsOf(page);
    assert.equal(points.length, 3);
    assert.ok(
      Math.max(...points) - Math.min(...points) < 1,
      `the points of numbers are at ${points.join(', ')}`,
    );
    const following = page.waitForResponse((response) => response.url().includes('follow=true'));
    await page.getByRole('button', { name: 'Live' }).click();
    await following;
    await server.store.items.insert([BSON.serialize({ _id: 'b', category: 'x', price: 20 })], 'replace');
    await page.waitForSelector('[data-key=b][data-mark=changed]');
    const motion = () =>
      page.evaluate<string>("getComputedStyle(document.querySelector('[data-key=b]')).animationName");
    assert.equal(await motion(), 'mark');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    assert.equal(await motion(), 'none', 'for somebody who asked for less motion');
    await server.insert([{ _id: 'bb', category: 'x', price: 5 }]);
    await page.waitForSelector('[data-key=bb][data-mark=new]');
    await server.store.items.remove([makeBookmark({ _id: 'c' })]);
    await page.waitForSelector('[data-key=c][data-mark=gone]');
    await page.waitForSelector('[data-key=c]', { state: 'detached' });
    await said(page, '#data-count', /^3 rows$/);
  });

  test('says that a resource does not exist, and lists those that do', async (open) => {
    const { page } = await open('#/orders');
    await page.goto(`${server.url}/#/nothing`);
    await said(page, '#warning', /^There is no resource nothing here\. These exist:$/);
    await page.locator('#home-rows').getByRole('link', { name: 'orders' }).click();
    await said(page, '#data-count', /^300 rows$/);
    await page.locator('#warning').waitFor({ state: 'hidden' });
  });

  test('the key of a row is never cut, nor scrolled away', async (open) => {
    for (const width of [1280, 390]) {
      const { page } = await open('#/orders', { viewport: { width, height: 740 } });
      await page.waitForSelector('#row-0:not(.coming)');
      await page.evaluate("document.getElementById('grid').scrollLeft = 700");
      const key = page.locator('#row-0 .key');
      assert.equal(await key.textContent(), '000000000000000000000000');
      const inSight = await page.evaluate<boolean[]>(`[...document.querySelectorAll('.key')].map((one) => {
        const { left, right } = one.getBoundingClientRect();
        return left >= 0 && right <= innerWidth && one.scrollWidth <= one.clientWidth;
      })`);
      assert.ok(inSight.length > 10 && inSight.every(Boolean), `the keys at ${width} pixels`);
    }
  });

  test('says why rows cannot be read, and reads them after a click on Try again', async (open) => {
    const { page } = await open('#/orders');
    const again = page.locator('#warning').getByRole('button', { name: 'Try again' });
    const detail = 'The store did not respond.';
    await page.route('**/orders?*', (route) => route.fulfill({ status: 503, json: { detail } }));
    await page.goto(`${server.url}/#/orders?status=paid`);
    await said(page, '#warning', /^The store did not respond\./);
    await said(page, '#empty', /^The rows could not be read\.$/);
    await page.unroute('**/orders?*');
    await again.click();
    await page.waitForSelector('#row-0:not(.coming)');
    await page.locator('#warning').waitFor({ state: 'hidden' });
    await page.route('**/resources', async (route) => {
      const { resources } = (await (await route.fetch()).json()) as { resources: { name: string }[] };
      const orders = resources.filter(({ name }) => name === 'orders');
      await route.fulfill({ json: { resources: orders.map((one) => ({ ...one, unavailable: detail })) } });
    });
    await page.goto(`${server.url}/#/orders`);
    await page.reload();
    await said(page, '#empty', /^The store did not respond\./);
    await page.unroute('**/resources');
    await page.locator('#empty').getByRole('button', { name: 'Try again' }).click();
    await page.waitForSelector('#row-0:not(.coming)');
  });

  test('notices that the server is gone, and reads the rows by itself when it is back', async (open) => {
    const { page } = await open('#/orders');
    await page.waitForSelector('#row-0:not(.coming)');
    assert.equal(await page.locator('#away').isVisible(), false);
    await page.context().setOffline(true);
    await page.locator('#away').waitFor();
    await page.getByRole('grid').press('End');
    await said(page, '#warning', /^The server does not answer\./);
    await page.context().setOffline(false);
    await page.waitForSelector('#row-299:not(.coming)');
    await page.locator('#away').waitFor({ state: 'hidden' });
    await page.locator('#warning').waitFor({ state: 'hidden' });
  });

  test('a phone shows one thing at a time, without scrolling sideways', async (open) => {
    const { page } = await open('#/orders', { viewport: { width: 390, height: 740 } });
    await page.waitForSelector('#row-0:not(.coming)');
    const fits = async () => assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
    await fits();
    await page.locator('#filter-box > summary').click();
    await page.getByRole('button', { name: /^paid/ }).click();
    await said(page, '#chips', /status is paid/);
    await page.locator('#row-0').click();
    await page.getByRole('button', { name: 'Close the row' }).click();
    await page.getByRole('button', { name: 'Get all of it' }).click();
    await page.getByRole('link', { name: 'Arrow' }).waitFor();
    await fits();
    for (const place of ['#/', '#proof/orders']) {
      await page.goto(`${server.url}/${place}`);
      await fits();
    }
  });
});
