import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { test, type TestContext } from 'node:test';
import { crc32 } from 'node:zlib';
import type { Page } from 'playwright-core';
import type { Tab } from '../../support/web/chromium.ts';
import { explorer, said } from '../../support/web/explorer.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';

/**
 * Rows of 8 kB. A stream that is not read fills every buffer on its way (the kernel's may hold 33 MB) and then
 * waits.
 */
const ROWS = 6_000;
const CATEGORIES = ['books', 'garden', 'music'];
const ROWS_SHOWN = '#grid .grid-body .grid-row:not(.coming)';

let server: TestServer;
async function start(whole: TestContext): Promise<TestServer> {
  server = await serverOn(whole, {});
  const noise = randomBytes(1024 * 1024).toString('base64'); // no coding makes it much smaller
  for (let at = 0; at < ROWS; at += 1000) {
    const documents = Array.from({ length: 1000 }, (_, n) => ({
      _id: `row-${String(at + n).padStart(5, '0')}`,
      category: CATEGORIES[(at + n) % CATEGORIES.length],
      price: ((at + n) * 7) % 100,
      filler: noise.slice(((at + n) * 8_000) % 1_000_000).slice(0, 8_000),
    }));
    await server.insert(documents);
  }
  return server;
}

function assertQuiet({ errors, requests }: Tab): void {
  assert.deepEqual(errors, [], 'no error in the console');
  const alien = requests.filter((url) => !url.startsWith(`${server.url}/`));
  assert.deepEqual(alien, [], 'no request leaves the host');
}

/** The cells of the first ten rows, without their numbers, once the request line shows the result. */
async function shown(page: Page, request: RegExp): Promise<string[][]> {
  await page.locator('#request').filter({ hasText: request }).waitFor();
  assert.match((await page.textContent('#request')) ?? '', /\u2192 200 in [\d.]+ ms$/);
  await page.waitForSelector(ROWS_SHOWN);
  const rows = await page.locator(ROWS_SHOWN).all();
  return Promise.all(rows.slice(0, 10).map((row) => row.getByRole('gridcell').allTextContents()));
}

async function idsOf(path: string): Promise<string[]> {
  const { data } = (await (await server.get(path)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

/** Limits the network of a page to a number of bytes per second. Resolves with what takes the limit away. */
async function throttled(page: Page, bytesPerSecond: number) {
  const session = await page.context().newCDPSession(page);
  const limit = (downloadThroughput: number) =>
    session.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 0,
      uploadThroughput: -1,
      downloadThroughput,
    });
  await limit(bytesPerSecond);
  return () => limit(-1);
}

explorer(start, (test) => {
  test('opens the only resource at the start', async (open) => {
    const tab = await open('');
    await tab.page.waitForURL('**/#/items');
    await said(tab.page, '#data-count', /^6,000 rows$/);
    assertQuiet(tab);
  });

  test('lists the resources with their rows first, and shows the one that is chosen', async (open) => {
    const tab = await open('#/');
    const { page } = tab;
    const row = page.locator('#home-rows tr').filter({ hasText: 'items' });
    assert.deepEqual((await row.locator('td').allTextContents()).slice(0, 4), [
      '6,000',
      'category',
      'idprice',
      'yes',
    ]);
    await row.getByRole('link', { name: 'items' }).click();
    await said(page, '#data-count', /^6,000 rows$/);
    assert.equal((await shown(page, /^GET \/items\?limit=100 /)).length, 10);
    assertQuiet(tab);
  });

  test('filters and sorts the table, and shows its request and the time it took', async (open) => {
    const tab = await open('#/items');
    const { page } = tab;
    await page.getByRole('button', { name: /^music ?2,000$/ }).click();
    const music = await shown(page, /^GET \/items\?category=music&limit=100 /);
    assert.deepEqual(
      music.map(([, category]) => category),
      Array(10).fill('music'),
    );
    const range = page.getByRole('form', { name: 'Range of price' });
    await range.getByLabel('from').fill('10');
    await range.getByLabel('to').fill('20.5');
    await page.keyboard.press('Enter');
    await shown(page, /category=music&min_price=10&max_price=20.5&sort=price_asc&limit=100 /);
    await page.getByRole('button', { name: 'price', exact: true }).click();
    const dear = await shown(page, /sort=price_desc&limit=100 /);
    assert.deepEqual(
      dear.map(([id]) => id),
      await idsOf('/items?category=music&sort=price_desc&min_price=10&max_price=20.5&limit=10'),
    );
    await page.getByRole('button', { name: 'Remove the filter: category is music' }).click();
    await shown(page, /^GET \/items\?min_price=10&max_price=20.5&sort=price_desc&limit=100 /);
    assertQuiet(tab);
  });

  test('shows the order that a price range requires, and explains empty results and errors in words', async (open) => {
    const tab = await open('#/items');
    const { page } = tab;
    const sorted = (name: string) =>
      page.locator('[role=columnheader][aria-sort=ascending]').filter({ hasText: name }).waitFor();
    await page.getByRole('form', { name: 'Range of price' }).getByLabel('from').fill('10');
    await page.keyboard.press('Enter');
    await shown(page, /min_price=10&sort=price_asc&limit=100 /);
    await sorted('price');
    await page.getByRole('button', { name: 'id', exact: true }).click();
    await shown(page, /^GET \/items\?limit=100 /);
    await sorted('id');
    assert.equal(await page.locator('[aria-sort=ascending]').count(), 1);
    await page.getByRole('button', { name: 'filler' }).click();
    await said(page, '#warning', /^No index orders items by filler: id or price do\./);
    await page.goto(`${server.url}/#/items?category=nothing%20of%20this%20name`);
    await said(page, '#empty', /^No row matches: category is nothing of this name\.$/);
    await page.goto(`${server.url}/#/items?category=${'x'.repeat(300)}`);
    await said(page, '#warning', /^category must be a string of 1 to 256 bytes/);
    assertQuiet({ ...tab, errors: tab.errors.filter((error) => !error.includes('status of 400')) });
  });

  test('scrolls through all rows by cursor, and to any place by number, forwards and backwards', async (open) => {
    const tab = await open('#/items');
    const { page, requests } = tab;
    const grid = page.getByRole('grid');
    const row = (number: number) =>
      page
        .locator(`#row-${number - 1}`)
        .getByRole('gridcell')
        .first();
    await grid.focus();
    for (let pages = 0; pages < 6; pages++) await grid.press('PageDown');
    await row(101).filter({ hasText: 'row-00100' }).waitFor();
    assert.ok(
      requests.some((url) => url.includes('/items?limit=100&cursor=')),
      'the next rows come by cursor',
    );
    await grid.press('End');
    await row(6_000).filter({ hasText: 'row-05999' }).waitFor();
    assert.ok((await page.locator('.grid-row').count()) < 100, 'only rows in sight are in the page');
    await page.evaluate('document.getElementById("grid").scrollTop = 90000');
    await row(3_001).filter({ hasText: 'row-03000' }).waitFor();
    // Where the first request begins depends on how far the table has scrolled when it is drawn.
    const offsets = requests.map((url) => Number(new URL(url).searchParams.get('offset') ?? 0));
    assert.ok(
      offsets.some((offset) => offset >= 2_500 && offset <= 3_000),
      `rows in the middle come by number: ${offsets.join(' ')}`,
    );
    await grid.press('Home');
    await row(1).filter({ hasText: 'row-00000' }).waitFor();
    assert.equal(await grid.getAttribute('aria-rowcount'), '6001');
    assertQuiet(tab);
  });

  test('jumps to a key, to a value of the order and to a number, and says when nothing is there', async (open) => {
    const tab = await open('#/items');
    const { page } = tab;
    const jump = async (to: string) => {
      await page.getByLabel('Jump to').fill(to);
      await page.keyboard.press('Enter');
    };
    const active = (number: number) =>
      page
        .locator(`#row-${number - 1}[aria-selected=true]`)
        .getByRole('gridcell')
        .first();
    await jump('row-04123');
    await active(4_124).filter({ hasText: 'row-04123' }).waitFor();
    await jump('row-04123x'); // no row has this key: the one behind it is shown
    await active(4_125).filter({ hasText: 'row-04124' }).waitFor();
    await jump('#5,432');
    await active(5_432).filter({ hasText: 'row-05431' }).waitFor();
    await jump('zzz');
    await said(page, '#warning', /^There is no row at zzz, or behind it\.$/);
    await page.getByRole('button', { name: 'price', exact: true }).click();
    await shown(page, /sort=price_asc/);
    await jump('50');
    const [id = ''] = await idsOf('/items?sort=price_asc&min_price=50&limit=1');
    await active(3_001).filter({ hasText: id }).waitFor();
    assertQuiet({ ...tab, errors: tab.errors.filter((error) => !error.includes('status of 404')) });
  });

  test('pauses a stream by not reading, and reads it to its end when it resumes', async (open) => {
    const tab = await open('#proof/items');
    const { page } = tab;
    await page.getByLabel('Speed').selectOption('full');
    // In one turn of the event loop, so that nothing is read before the pause.
    await page.evaluate("document.getElementById('start').click(); document.getElementById('pause').click()");
    await said(page, '#stream-state', /^paused/);
    assert.equal(await page.textContent('#stream-rows'), '0');
    await page.getByRole('button', { name: 'Continue' }).click();
    await said(page, '#stream-state', /^complete and verified$/);
    await said(page, '#stream-rows', /^6,000$/);
    assert.equal(await page.textContent('#stream-proved'), '6,000');
    assertQuiet(tab);
  });

  test('a stream whose connection is killed goes on by itself, and its checksum is that of the server', async (open) => {
    const tab = await open('#proof/items');
    const { page } = tab;
    const free = await throttled(page, 12e6);
    await page.getByLabel('Speed').selectOption('full');
    await page.getByRole('button', { name: 'Start' }).press('Space');
    await said(page, '#stream-proved', /^[1-9]/);
    await page.getByRole('button', { name: 'Kill the connection' }).click();
    await said(page, '#stream-state', /^cut\. It goes on by itself after row [1-9]/);
    assert.equal(await page.getAttribute('#checksum', 'data-state'), 'open');
    await free();
    await said(page, '#stream-request', /&cursor=/);
    await said(page, '#stream-state', /^complete and verified$/);
    await said(page, '#stream-rows', /^6,000$/);
    assert.equal(await page.textContent('#stream-pieces'), '2');
    assert.equal(await page.getAttribute('#checksum', 'data-state'), 'good');
    const identity = { 'accept-encoding': 'identity' }; // Brotli would take a minute
    const whole = Buffer.from(await (await server.get('/items/stream', identity)).arrayBuffer());
    const crc = crc32(whole).toString(16).padStart(8, '0');
    assert.equal(await page.textContent('#checksum-own'), crc, 'that of one stream without a cut');
    assert.equal(await page.textContent('#checksum-joined'), crc);
    assertQuiet(tab);
  });

  test('exports what is shown, follows the export, and offers the file', async (open) => {
    // A double would be 99.
    const place = '#/items?category=garden&min_price=98.99999999999999999999&sort=price_asc';
    const tab = await open(place, { acceptDownloads: true });
    const { page } = tab;
    await page.getByRole('button', { name: 'Get all of it' }).click();
    await page.getByLabel('Format').selectOption('csv');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await said(
      page,
      '#export-request',
      /^POST \/exports \{"resource":"items","category":"garden".*"min_price":98\.99999999999999999999,.*"format":"csv".*\} → 202$/,
    );
    const stream = await server.get('/items/stream?category=garden&sort=price_asc&min_price=99&format=csv');
    const expected = Buffer.from(await stream.arrayBuffer());
    const rows = expected.toString().split('\r\n').length - 2; // without the header and the end of the last line
    await said(page, '#export-list li', new RegExp(`complete: ${rows} rows`));
    const progress = page.locator('#export-list progress');
    assert.equal(await progress.getAttribute('value'), await progress.getAttribute('max'));
    const coming = page.waitForEvent('download');
    await page.getByRole('link', { name: /^Download, / }).click();
    const file = await readFile(await (await coming).path());
    assert.ok(rows > 10);
    assert.ok(file.equals(expected));
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await said(page, '#export-request', /^DELETE \/exports\/\S+ → 20\d$/);
    await page.locator('#export-list li').waitFor({ state: 'detached' });
    const direct = page.waitForEvent('download');
    await page.getByRole('link', { name: 'CSV' }).click();
    const download = await direct;
    assert.equal(download.suggestedFilename(), 'items.csv');
    assert.ok((await readFile(await download.path())).equals(expected));
    assertQuiet(tab);
  });
});

test('the page can run scripts and contact only from its own server, and its files are cached for good', async () => {
  const page = await server.get('/');
  assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self'; /);
  assert.ok(!/unsafe|\*|https?:/.test(page.headers.get('content-security-policy') ?? ''));
  const html = await page.text();
  assert.ok(!/ style=| on\w+=|<script>/.test(html), 'nothing inline');
  const files = [...html.matchAll(/(?:src|href)="(explorer\/[^"]+)"/g)].map(([, path = '']) => `/${path}`);
  assert.equal(files.length, 3);
  let bytes = html.length;
  for (const path of files) {
    const file = await server.get(path);
    assert.equal(file.status, 200, path);
    assert.match(file.headers.get('cache-control') ?? '', /immutable/);
    bytes += (await file.arrayBuffer()).byteLength;
  }
  assert.ok(bytes < 150_000, `the page has ${bytes} bytes in all`);
  const again = await server.get('/', { 'if-none-match': page.headers.get('etag') ?? '' });
  const missing = await server.get(`${files[0]?.replace(/[^/]+$/, '') ?? ''}index.html`);
  assert.deepEqual([again.status, missing.status], [304, 404]);
});
