import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openChromium, openTab } from '../../support/web/chromium.ts';
import { said } from '../../support/web/explorer.ts';
import { serverOn } from '../../support/process/server.ts';

const ROWS = 300_000;
const REFUSAL = 'No index answers status alone.';

const LISTED = {
  name: 'big',
  rows: 10,
  queries: [
    { filters: [], sort: 'id', index: '_id_' },
    { filters: [], sort: 'createdAt', index: 'by_time' },
    { filters: ['createdAt'], sort: 'id', index: 'by_time' },
    { filters: ['status'], sort: 'id', index: 'by_status' },
  ],
  kinds: [
    { field: 'createdAt', kinds: ['date'] },
    { field: 'status', kinds: ['string'] },
  ],
  missing: [{ index: 'by_size', line: 'a line' }],
  refused: [],
  formats: ['ndjson'],
  links: { page: '/big', stream: '/big/stream', changes: '/big/changes' },
};

test('the page cuts no number and no button, and says a refusal once', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const server = await serverOn(t, {});
  const { page } = await openTab(browser, { viewport: { width: 1280, height: 800 } });
  await page.addInitScript("sessionStorage.setItem('sluice-key', 'some-key')");
  const problem = { status: 400, json: { code: 'not-indexed', detail: REFUSAL } };
  await page.route('**/resources', (route) =>
    route.fulfill({ json: { resources: [LISTED, { ...LISTED, name: 'other' }] } }),
  );
  await page.route(/\/big\/changes/, (route) => route.fulfill(problem));
  await page.route(/\/big\/values/, (route) =>
    route.fulfill({
      json: { data: [{ value: 'paid', count: 1 }], omitted: 0, page: { hasMore: false, nextCursor: null } },
    }),
  );
  await page.route(/\/big\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    if (query.has('status')) return route.fulfill(problem);
    const [offset = 0, cursor = 0, limit = 0] = ['offset', 'cursor', 'limit'].map((name) =>
      Number(query.get(name) ?? 0),
    );
    const first = Math.max(offset, cursor);
    const isDown = query.get('sort') === 'id_desc';
    const data = Array.from({ length: Math.min(limit, ROWS - first) }, (_, n) => ({
      id: `row-${isDown ? ROWS - 1 - first - n : first + n}`,
      number: 'A8888888',
      createdAt: '2026-01-02T03:04:05.006Z',
    }));
    const total = query.has('count') ? { total: ROWS, totalIs: 'exact' } : {};
    return route.fulfill({
      json: { data, page: { hasMore: first + limit < ROWS, nextCursor: String(first + limit), ...total } },
    });
  });
  await page.goto(`${server.url}/#/`);
  await page.getByText('1 note', { exact: true }).first().waitFor();
  await page.goto(`${server.url}/#/big`);
  await said(page, '#data-count', /^300,000 rows$/);
  await page.getByLabel('Jump to').fill('#299990');
  await page.getByRole('button', { name: 'Go' }).click();
  await page.waitForSelector('[data-key=row-299990]');
  const cut = await page.evaluate<string[]>(
    `[...document.querySelectorAll('.grid-body .row-number, .grid-body .cell')]
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)`,
  );
  assert.deepEqual(cut, []);
  const date = page.locator('.facet').filter({ has: page.locator('summary', { hasText: /^createdAt$/ }) });
  assert.equal(await date.locator('form.range').count(), 1);
  assert.equal(await date.locator('.facet-values').count(), 0, 'dates are not listed one by one');

  await page.getByRole('button', { name: 'Live' }).click();
  await page.evaluate("location.hash = '/big?status=x'");
  await said(page, '#warning', new RegExp(REFUSAL));
  await page.getByText('The rows could not be read.').waitFor();
  await page.locator('#grid').waitFor({ state: 'hidden' });
  const shown = await page.evaluate<string>('document.body.innerText');
  assert.equal(shown.split(REFUSAL).length - 1, 1, shown);

  await page.setViewportSize({ width: 390, height: 800 });
  for (const hash of ['/', '/big', 'proof']) {
    await page.evaluate(`location.hash = '${hash}'`);
    const box = await page.getByRole('button', { name: 'Forget the key' }).boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `${hash}: ${JSON.stringify(box)}`);
  }
});
