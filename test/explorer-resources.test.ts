import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openChromium, openTab } from './support/chromium.ts';
import { ordersOf } from './support/orders.ts';
import { withOrders } from './support/orders-store.ts';
import { serverOn } from './support/server.ts';

const ROWS = ordersOf(300);

test('the explorer page asks a resource what its indexes answer, pages through it, and shows the line of a missing index', async (t) => {
  const browser = await openChromium(t);
  const settings = await withOrders(t, 'lmdb', ROWS);
  if (!browser || !settings) return;
  const server = await serverOn(t, settings);
  const { page, errors } = await openTab(browser, { viewport: { width: 360, height: 740 } });
  await page.goto(server.url);
  await page.getByRole('link', { name: 'Resources' }).waitFor();
  const section = page.locator('#resources');
  await section.locator('select[name=resource]').selectOption('orders');
  const forms = await section.getByLabel('Query').locator('option').allTextContents();
  const wanted = forms.find((text) => text.startsWith('status, ordered by createdAt ('));
  assert.ok(wanted, forms.join('; '));
  await section.getByLabel('Query').selectOption(wanted);
  await section.getByLabel('status is').fill('paid');
  await section.getByLabel('createdAt from').fill('2026-01-10');
  await section.getByLabel('Direction').selectOption('descending');
  await section.getByRole('button', { name: 'Ask' }).click();
  await section.locator('#resource-request').filter({ hasText: '→ 200 in' }).waitFor();
  const query = 'status=paid&createdAt.gte=2026-01-10&sort=createdAt_desc';
  const all = (await (await server.get(`/orders?${query}&limit=20`)).json()) as { data: { id: string }[] };
  const ids = all.data.map(({ id }) => id);
  const shown = () => section.locator('#resource-body tr td:first-child').allTextContents();
  assert.deepEqual(await shown(), ids.slice(0, 10));
  await section.getByRole('button', { name: 'More' }).click();
  await section.locator('#resource-request').filter({ hasText: 'cursor=' }).waitFor();
  assert.deepEqual(await shown(), ids.slice(10, 20));
  const curl = (await section.locator('#resource-curl').textContent()) ?? '';
  const [, url = ''] = /^curl '(.*)'$/.exec(curl) ?? [];
  const streamed = await (await fetch(url)).text();
  assert.equal(streamed, await (await server.get(`/orders/stream?${query}`)).text());

  await section.getByLabel('status is').fill('');
  assert.deepEqual(errors, [], 'no error in the console');
  await section.getByRole('button', { name: 'Ask' }).click();
  await section.locator('#resource-request').filter({ hasText: 'sluice index orders createdAt' }).waitFor();
  assert.match((await section.locator('#resource-request').textContent()) ?? '', /→ 400 in/);

  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360, 'it fits a phone');
  for (const control of await section.locator('button, input, select, [role=region]').all())
    assert.match(await control.ariaSnapshot(), /^- \w+ "[^"]+"/);
});
