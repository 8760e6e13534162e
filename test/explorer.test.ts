import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openChromium, openTab, type Tab } from './support/chromium.ts';
import { serverOn, type TestServer } from './support/server.ts';

/**
 * Rows of 8 kB. A stream that is not read fills every buffer on its way (the kernel's may hold 33 MB) and then
 * waits.
 */
const ROWS = 14_000;
const CATEGORIES = ['books', 'garden', 'music'];
const ROW_CELLS = '#items-body tr';

let server: TestServer;
let browser: Browser | null;
const cleanups: (() => void | Promise<void>)[] = [];
const whole = {
  after: (cleanup: () => void | Promise<void>) => cleanups.push(cleanup),
} as unknown as TestContext;

before(async () => {
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
});
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** A tab with the page; null without Chromium. Afterwards it must have had no error and contacted no other host. */
async function explorer(t: TestContext, options: Parameters<typeof openTab>[1] = {}): Promise<Tab | null> {
  const shared: Pick<TestContext, 'after' | 'skip'> = { ...whole, skip: (reason) => t.skip(reason) };
  browser ??= await openChromium(shared);
  if (!browser) return null;
  const tab = await openTab(browser, options);
  t.after(() => tab.page.close());
  await tab.page.goto(server.url);
  await tab.page.waitForSelector(ROW_CELLS);
  return tab;
}

function assertQuiet({ errors, requests }: Tab): void {
  assert.deepEqual(errors, [], 'no error in the console');
  const alien = requests.filter((url) => !url.startsWith(`${server.url}/`));
  assert.deepEqual(alien, [], 'no request leaves the host');
}

/** The first cells of the table's rows, once the request line shows the result. */
async function shown(page: Page, request: RegExp): Promise<string[][]> {
  await page.locator('#items-request').filter({ hasText: request }).waitFor();
  assert.match((await page.textContent('#items-request')) ?? '', /→ 200 in [\d.]+ ms$/);
  const rows = await page.locator(ROW_CELLS).all();
  return Promise.all(rows.map((row) => row.locator('td').allTextContents()));
}

async function idsOf(path: string): Promise<string[]> {
  const { data } = (await (await server.get(path)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

async function waitText(page: Page, selector: string, text: RegExp): Promise<void> {
  await page.locator(selector).filter({ hasText: text }).waitFor();
}

async function morePoints(page: Page, plot: string, count: number): Promise<void> {
  await page.waitForSelector(`xpath=//*[@id="plot-${plot}"][@data-points >= ${count}]`);
}

/** Waits until the server has read no more rows for two points of the plot. The browser's own buffers fill first. */
async function rowsStandStill(page: Page): Promise<void> {
  const rows = () => page.textContent('#server-rows');
  for (let before = null, now = await rows(); now !== before;) {
    before = now;
    const points = Number(await page.getAttribute('#plot-streams', 'data-points'));
    await morePoints(page, 'streams', points + 2);
    now = await rows();
  }
}

/** Limits the network of a page to a number of bytes per second, until it is released. */
async function throttled(
  page: Page,
  bytesPerSecond: number,
): Promise<{ readonly free: () => Promise<void> }> {
  const session = await page.context().newCDPSession(page);
  const set = (downloadThroughput: number) =>
    session.send('Network.emulateNetworkConditions', {
      ...{ offline: false, latency: 0, uploadThroughput: -1 },
      downloadThroughput,
    });
  await set(bytesPerSecond);
  return {
    free: async () => {
      await set(-1);
    },
  };
}

describe('the explorer page', () => {
  test('filters and sorts the table, and shows its request and the time it took', async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    await page.getByLabel('Category').fill('music');
    await page.keyboard.press('Enter');
    const music = await shown(page, /^GET \/items\?category=music&sort=id_asc&limit=10 /);
    assert.deepEqual(
      music.map(([, category]) => category),
      Array(10).fill('music'),
    );
    await page.getByLabel('Order').selectOption('price_desc');
    await page.getByLabel('Minimum price').fill('10');
    await page.getByLabel('Maximum price').fill('20.5');
    await page.keyboard.press('Enter');
    const dear = await shown(page, /sort=price_desc&min_price=10&max_price=20.5&limit=10 /);
    assert.deepEqual(
      dear.map(([id]) => id),
      await idsOf('/items?category=music&sort=price_desc&min_price=10&max_price=20.5&limit=10'),
    );
    assertQuiet(tab);
  });

  test('shows the order that a price range requires, and explains empty results and errors in words', async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    await page.getByLabel('Minimum price').fill('10');
    await page.keyboard.press('Enter');
    await shown(page, /sort=price_asc&min_price=10&limit=10 /);
    assert.equal(await page.getByLabel('Order').inputValue(), 'price_asc');
    await page.getByLabel('Order').selectOption('id_desc');
    await shown(page, /sort=price_desc&min_price=10&limit=10 /);
    assert.equal(await page.getByLabel('Order').inputValue(), 'price_desc');
    await page.getByLabel('Category').fill('nothing of this name');
    await page.keyboard.press('Enter');
    const rows = await shown(page, /category=nothing/);
    assert.deepEqual(rows, [['No item matches this category and price range.']]);
    await page.getByLabel('Category').fill('x'.repeat(300));
    await page.keyboard.press('Enter');
    await waitText(page, '#items-request', /→ 400 in [\d.]+ ms: category must be a string of 1 to 256 bytes/);
    assertQuiet({ ...tab, errors: tab.errors.filter((error) => !error.includes('status of 400')) });
  });

  for (const [style, second] of [
    ['cursor', /&cursor=[\w-]+ /],
    ['offset', /&offset=10 /],
    ['page number', /&page=2 /],
  ] as const) {
    test(`pages by ${style}, forwards and backwards`, async (t) => {
      const tab = await explorer(t);
      if (!tab) return;
      const { page } = tab;
      await page.getByLabel(style, { exact: true }).check();
      await page.getByRole('button', { name: 'Next' }).click();
      const next = await shown(page, second);
      assert.deepEqual(
        next.map(([id]) => id),
        await idsOf('/items?limit=10&offset=10'),
      );
      await page.getByRole('button', { name: 'Previous' }).click();
      const first = await shown(page, /limit=10 /);
      assert.deepEqual(
        first.map(([id]) => id),
        await idsOf('/items?limit=10'),
      );
      assert.ok(await page.getByRole('button', { name: 'Previous' }).isDisabled());
      assertQuiet(tab);
    });
  }

  test('fetches a deep row by offset and by cursor, and shows both times', async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    await page.getByLabel('Row', { exact: true }).fill('5000');
    await page.getByRole('button', { name: 'Compare offset and cursor' }).click();
    await waitText(
      page,
      '#depth-result',
      /^after row 5,000: offset [\d.]+ ms, cursor [\d.]+ ms, the same rows$/,
    );
    await page.getByLabel('Row', { exact: true }).fill('20000');
    await page.keyboard.press('Enter');
    await waitText(page, '#depth-result', /^There are fewer than 20,000 rows\.$/);
    assertQuiet(tab);
  });

  test('pauses a stream by not reading, so that the server waits and reads no more until it resumes', async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    // In one turn of the event loop, so that nothing is read before the pause.
    await page.evaluate("document.getElementById('start').click(); document.getElementById('pause').click()");
    await waitText(page, '#stream-state', /^paused/);
    await waitText(page, '#server-stalled', /^1$/);
    await rowsStandStill(page);
    assert.notEqual(
      await page.textContent('#server-rows'),
      '14,000',
      'the server reads nothing while the reader waits',
    );
    assert.equal(await page.textContent('#server-streams'), '1');
    await page.getByRole('button', { name: 'Continue' }).click();
    await waitText(page, '#stream-state', /^complete and verified$/);
    await waitText(page, '#stream-rows', /^14,000$/);
    assert.equal(await page.textContent('#stream-proved'), '14,000');
    assertQuiet(tab);
  });

  test('cuts a stream and resumes it by its cursor, with the same rows', async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    const network = await throttled(page, 12e6);
    await page.getByRole('button', { name: 'Start' }).press('Space');
    await waitText(page, '#stream-proved', /^[1-9]/);
    await page.getByRole('button', { name: 'Cut' }).click();
    await waitText(page, '#stream-state', /^cut: resumes after the last verified row$/);
    await network.free();
    await page.getByRole('button', { name: 'Resume by cursor' }).click();
    await waitText(page, '#stream-request', /&cursor=/);
    await waitText(page, '#stream-state', /^complete and verified$/);
    await waitText(page, '#stream-rows', /^14,000$/);
    assertQuiet(tab);
  });

  test('exports what is shown, follows the export, and offers the file', async (t) => {
    const tab = await explorer(t, { acceptDownloads: true });
    if (!tab) return;
    const { page } = tab;
    await page.getByLabel('Category').fill('garden');
    await page.getByLabel('Order').selectOption('price_asc');
    await page.getByLabel('Minimum price').fill('98.99999999999999999999'); // a double would be 99
    await page.getByLabel('Format').selectOption('csv');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await waitText(
      page,
      '#export-request',
      /^POST \/exports \{"category":"garden".*"min_price":98\.99999999999999999999,.*"format":"csv".*\} → 202$/,
    );
    const stream = await server.get('/items/stream?category=garden&sort=price_asc&min_price=99&format=csv');
    const expected = Buffer.from(await stream.arrayBuffer());
    const rows = expected.toString().split('\r\n').length - 2; // without the header and the end of the last line
    await waitText(page, '#export-list li', new RegExp(`complete: ${rows} rows`));
    const progress = page.locator('#export-list progress');
    assert.equal(await progress.getAttribute('value'), await progress.getAttribute('max'));
    const coming = page.waitForEvent('download');
    await page.getByRole('link', { name: /^Download, / }).click();
    const file = await readFile(await (await coming).path());
    assert.ok(rows > 10);
    assert.ok(file.equals(expected));
    await page.getByRole('button', { name: 'Remove' }).click();
    await waitText(page, '#export-request', /^DELETE \/exports\/\S+ → 20\d$/);
    assert.equal(await page.locator('#export-list li').count(), 0);
    assertQuiet(tab);
  });

  test('shows two minutes in its plots, even before the first value', async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    for (const name of ['rows', 'requests']) {
      await page.waitForSelector(`#plot-${name}[data-from]`, { state: 'attached' });
      const from = Number(await page.getAttribute(`#plot-${name}`, 'data-from'));
      const ago = Date.now() / 1000 - from;
      assert.ok(ago > 60 && ago < 300, `${name} begins ${ago} s ago`);
    }
    assertQuiet(tab);
  });

  test("plots the server's counters", async (t) => {
    const tab = await explorer(t);
    if (!tab) return;
    const { page } = tab;
    for (const name of ['requests', 'streams', 'memory', 'latency', 'rows']) {
      await morePoints(page, name, 2);
      assert.equal(await page.locator(`#plot-${name} canvas`).count(), 1, name);
    }
    assert.ok(Number(await page.textContent('#now-memory')) > 10);
    assertQuiet(tab);
  });

  test('fits a phone, follows a preference for dark colours, and labels every control', async (t) => {
    const tab = await explorer(t, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    if (!tab) return;
    const { page } = tab;
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
    assert.equal(
      await page.evaluate('getComputedStyle(document.documentElement).backgroundColor'),
      'rgb(21, 24, 27)',
    );
    const controls = page.locator('button, input, select, progress, [role=region]');
    for (const control of await controls.all()) {
      const snapshot = await control.ariaSnapshot();
      assert.match(snapshot, /^- \w+ "[^"]+"/, snapshot);
    }
    assertQuiet(tab);
  });
});

test('the page can run scripts and contact only from its own server, and its files are cached for good', async () => {
  const page = await server.get('/');
  assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self'; /);
  assert.ok(!/unsafe|\*|https?:/.test(page.headers.get('content-security-policy') ?? ''));
  const html = await page.text();
  assert.ok(!/ style=| on\w+=|<script>/.test(html), 'nothing inline');
  const files = [...html.matchAll(/(?:src|href)="(\/explorer\/[^"]+)"/g)].map(([, path = '']) => path);
  assert.equal(files.length, 4);
  for (const path of files) {
    const file = await server.get(path);
    assert.equal(file.status, 200, path);
    assert.match(file.headers.get('cache-control') ?? '', /immutable/);
  }
  const [again, missing] = [
    await server.get('/', { 'if-none-match': page.headers.get('etag') ?? '' }),
    await server.get(`${files[0]?.replace(/[^/]+$/, '') ?? ''}index.html`),
  ];
  assert.deepEqual([again.status, missing.status], [304, 404]);
});
