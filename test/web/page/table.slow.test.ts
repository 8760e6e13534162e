import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { openChromium, openTab } from '../../support/web/chromium.ts';
import { serverOn } from '../../support/process/server.ts';

/** More rows than a browser can make an element high, and than the server finds by number. */
const ROWS = 5_000_000;
const MAX_OFFSET = 1_000_000;

const LISTED = {
  name: 'big',
  rows: ROWS,
  queries: [{ filters: [], sort: 'id', index: '_id_' }],
  kinds: [],
  missing: [],
  refused: [],
  formats: ['ndjson'],
  links: { page: '/big', stream: '/big/stream' },
};

/** A page of the explorer whose resource `big` answers as a server with that number of rows would, row n with the id n. */
async function bigTable(t: TestContext): Promise<{ page: Page; asked: string[] } | null> {
  const browser = await openChromium(t);
  if (!browser) return null;
  const server = await serverOn(t, {});
  const { page } = await openTab(browser, { viewport: { width: 1280, height: 800 }, bypassCSP: true });
  const asked: string[] = [];
  await page.route('**/resources', (route) => route.fulfill({ json: { resources: [LISTED] } }));
  await page.route(/\/big\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    asked.push(query.toString());
    const [offset, cursor, limit] = ['offset', 'cursor', 'limit'].map((name) => Number(query.get(name) ?? 0));
    if ((offset ?? 0) > MAX_OFFSET)
      return route.fulfill({
        status: 400,
        json: { code: 'offset-too-deep', detail: 'offset is too large.' },
      });
    const isDown = query.get('sort') === 'id_desc';
    const first = (cursor ?? 0) > 0 ? (cursor ?? 0) : (offset ?? 0);
    const end = Math.min(ROWS, first + (limit ?? 0));
    const data = Array.from({ length: end - first }, (_, n) => {
      const id = isDown ? ROWS - 1 - first - n : first + n;
      return { id, name: `row ${id}` };
    });
    const total = query.has('count') ? { total: ROWS, totalIs: 'exact' } : {};
    return route.fulfill({
      json: { data, page: { hasMore: end < ROWS, nextCursor: String(end), ...total } },
    });
  });
  await page.goto(`${server.url}/#/big`);
  await page
    .locator('#data-count')
    .filter({ hasText: /^5,000,000 rows$/ })
    .waitFor();
  return { page, asked };
}

/** The number of the first row below the head, as the table numbers it and as its cell says. */
async function firstInSight(page: Page): Promise<{ number: number; id: number }> {
  const [number, id] = await page.evaluate<[number, number]>(`(() => {
    const grid = document.getElementById('grid');
    const top = grid.getBoundingClientRect().top + 40;
    const row = [...grid.querySelectorAll('.grid-body .grid-row')].find((one) => one.getBoundingClientRect().bottom > top);
    return [...row.children].slice(0, 2).map(({ textContent }) => Number(textContent.replaceAll(',', '')));
  })()`);
  return { number, id };
}

test('five million rows scroll row by row and by large jumps, at both ends and across, with few rows in memory', async (t) => {
  const table = await bigTable(t);
  if (!table) return;
  const { page, asked } = table;
  const grid = page.getByRole('grid');
  const settled = () =>
    page.waitForFunction(
      "!document.querySelector('.coming') && document.querySelector('.grid-body .grid-row')",
    );
  const scrollTo = async (share: number) => {
    await page.evaluate(`new Promise((resolve) => {
      const grid = document.getElementById('grid');
      grid.scrollTop = grid.scrollHeight * ${share};
      requestAnimationFrame(() => requestAnimationFrame(resolve));
    })`);
  };
  await settled();
  assert.deepEqual(await firstInSight(page), { number: 1, id: 0 });

  // Small movements go row by row, also where the space moves along.
  await scrollTo(0.1);
  await settled();
  const before = await firstInSight(page);
  assert.ok(Math.abs(before.number / ROWS - 0.1) < 0.01, `row ${before.number} at a tenth`);
  assert.equal(before.id, before.number - 1);
  await grid.hover();
  for (let step = 0; step < 40; step++) await page.mouse.wheel(0, 300);
  await page.waitForFunction(
    `[...document.querySelectorAll('.grid-row[data-row="${before.number + 399}"]')].length > 0`,
  );
  await settled();
  let later = await firstInSight(page);
  for (let frames = 0; later.number < before.number + 397 && frames < 300; frames++) {
    await page.evaluate('new Promise(requestAnimationFrame)'); // the last movement may still be on its way
    later = await firstInSight(page);
  }
  assert.ok(
    Math.abs(later.number - before.number - 400) <= 3,
    `${before.number} and 400 rows on: ${later.number}`,
  );
  assert.equal(later.id, later.number - 1);
  assert.ok(
    asked.some((query) => query.includes('cursor=')),
    'the next rows come by cursor',
  );

  // The end, which the server does not find by number, is read from behind.
  await grid.focus();
  await grid.press('End');
  await page
    .locator(`#row-${ROWS - 1}`)
    .getByRole('gridcell')
    .first()
    .filter({ hasText: String(ROWS - 1) })
    .waitFor();
  assert.ok(asked.some((query) => query.includes('sort=id_desc')));

  // The middle is too deep from both ends, and the page says so.
  await scrollTo(0.5);
  await page.locator('#warning').filter({ hasText: 'is too deep to be found by its number' }).waitFor();
  await grid.press('Home');
  await page.locator('#row-0').getByRole('gridcell').first().filter({ hasText: /^0$/ }).waitFor();
  for (let share = 0; share < 0.19; share += 0.02) {
    await scrollTo(share);
    await settled();
  }
  assert.ok((await page.locator('.grid-row').count()) < 100);
});
