import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { addAxe, faultsOf } from '../../support/web/axe.ts';
import { keyedServer } from '../../support/access/keyed.ts';
import { said } from '../../support/web/explorer.ts';
import { openChromium, openTab } from '../../support/web/chromium.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { ordersOf, withOrders } from '../../support/resources/orders.ts';
import { resourcesFile } from '../../support/resources/resources.ts';
import { serverOn } from '../../support/process/server.ts';

test('no part of the explorer page has a serious fault of accessibility, at both widths, light and dark', async (t) => {
  const browser = await openChromium(t);
  const settings = await withOrders(t, 'sqlite', ordersOf(300));
  if (!browser) return;
  // With one resource the page opens that at once.
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
  const server = await serverOn(t, { ...settings, RESOURCES_FILE });
  for (const width of [1280, 390]) {
    const { page } = await openTab(browser, {
      viewport: { width, height: 800 },
      colorScheme: 'light',
      reducedMotion: 'reduce',
      bypassCSP: true,
    });
    await page.goto(server.url);
    await addAxe(page);
    const check = async (place: string) => {
      assert.deepEqual(await faultsOf(page), [], `${place} at ${width} pixels, light`);
      await page.emulateMedia({ colorScheme: 'dark' });
      // The scheme changes colours alone, and this is the rule about them.
      assert.deepEqual(await faultsOf(page, ['color-contrast']), [], `${place} at ${width} pixels, dark`);
      await page.emulateMedia({ colorScheme: 'light' });
    };
    const go = (hash: string) => page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.waitForSelector('#home-rows tr');
    await check('the list of resources');
    await go('/orders?status=paid');
    await page.waitForSelector('#row-0:not(.coming)');
    await page.waitForSelector('.value', { state: 'attached' });
    await check('the rows');
    await page.locator('#row-0').click();
    await page.waitForSelector('#detail details');
    await check('one row');
    if (width < 500) await page.getByRole('button', { name: 'Close the row' }).click();
    await page.getByRole('button', { name: 'Get all of it' }).click();
    await page.waitForSelector('#snippet-code');
    await check('get all of it');
    await go('proof/orders');
    await page.getByLabel('Speed').selectOption('full');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForSelector('#checksum[data-state=good]');
    await check('the proof');
    await page.close();
  }
});

test('every control works by keyboard alone, and can be seen when it has the focus', async (t) => {
  const browser = await openChromium(t);
  const settings = await withOrders(t, 'sqlite', ordersOf(300));
  if (!browser) return;
  const server = await serverOn(t, settings);
  const { page, errors } = await openTab(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${server.url}/#/orders`);
  await page.waitForSelector('#row-0:not(.coming)');
  await page.waitForSelector('.value');
  const seen = new Set<string>();
  for (let tabs = 0; tabs < 80; tabs++) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate<{ name: string; isSeen: boolean } | null>(`(() => {
      const one = document.activeElement;
      if (!one || one === document.body) return null;
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      return { name: one.id || one.textContent, isSeen: outlineStyle !== 'none' && outlineWidth !== '0px' };
    })()`);
    if (!focused || seen.has(focused.name)) continue;
    assert.ok(focused.isSeen, `${focused.name} shows that it has the focus`);
    seen.add(focused.name);
  }
  const reached = 'skip,Data,proof-nav,API reference,grid,jump-to,live,take-button,total'.split(',');
  for (const name of reached) assert.ok(seen.has(name), `${name} is reached: ${[...seen].join(', ')}`);
  await page.getByRole('grid').focus();
  await page.keyboard.press('PageDown');
  await page.keyboard.press('Enter');
  await page.locator('#detail').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Get all of it' }).press('Enter');
  await page.locator('#take').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#take-button:focus').waitFor();
  for (const control of await page.locator('button:visible, input:visible, select:visible').all())
    assert.match(await control.ariaSnapshot(), /^- \w+ "[^"]+"/);
  assert.deepEqual(errors, []);
});

test('a server with keys gives the page to everybody, and the page asks for a key, which stays in its tab', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const file = join(await temporaryFolder(t), 'keys');
  await writeFile(file, `alice ${createHash('sha256').update('alice-key').digest('hex')}\n`);
  const server = await serverOn(t, { API_KEYS_FILE: file });
  await server.insert([{ _id: 'a', category: 'x', price: 1 }]);
  const { page, requests } = await openTab(browser, { acceptDownloads: true });
  await page.goto(`${server.url}/#/items`);
  const dialog = page.getByRole('dialog', { name: 'API key' });
  await dialog.getByText('This server needs an API key.').waitFor();
  await dialog.getByLabel('Key').fill('not a key');
  await page.keyboard.press('Enter');
  await dialog.getByText('The server does not accept this key.').waitFor();
  await dialog.getByLabel('Key').fill('alice-key');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await page.waitForSelector('[data-key=a]');
  await page.getByRole('button', { name: 'Get all of it' }).click();
  const code = (await page.textContent('#snippet-code')) ?? '';
  assert.match(code, /-H "Authorization: Bearer \$SLUICE_KEY"/);
  assert.ok(!(await page.content()).includes('alice-key'), 'the key is nowhere in the page');
  const saved = page.waitForEvent('download');
  await page.getByRole('link', { name: 'NDJSON' }).click();
  const download = await saved;
  assert.equal(download.suggestedFilename(), 'items.ndjson');
  assert.equal(await readFile(await download.path(), 'utf8'), '{"id":"a","category":"x","price":1}\n');
  assert.ok(
    requests.every((url) => !url.includes('alice-key')),
    'no URL has the key',
  );
  await page.reload();
  await page.waitForSelector('[data-key=a]');
  const { page: other } = await openTab(browser);
  await other.goto(`${server.url}/#/items`);
  await other.getByText('This server needs an API key.').waitFor();
  await page.getByRole('button', { name: 'Forget the key' }).click();
  await page.getByText('This server needs an API key.').waitFor();
});

test('a key that opens a part shows that part only, and nothing that it may not do', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const rows = ['acme', 'acme', 'other'].map((tenant, n) => ({
    _id: `row-${n}`,
    tenant,
    total: n,
    margin: 7_777,
  }));
  const keys = [
    {
      name: 'acme',
      where: { orders: { tenant: 'acme' } },
      hide: { orders: ['margin'] },
      actions: ['read'],
    },
  ];
  const server = await keyedServer(t, 'sqlite', keys, [
    { name: 'orders', rows, indexes: [['tenant'], ['tenant', 'total']] },
  ]);
  const { page, requests } = await openTab(browser);
  await page.goto(server.url);
  const dialog = page.getByRole('dialog', { name: 'API key' });
  await dialog.getByLabel('Key').fill('secret-of-acme');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await page.waitForURL('**/#/orders'); // the only one opens by itself
  await page.waitForSelector('[data-key=row-1]');
  assert.equal(await page.locator('#resource-list li').count(), 1, 'one resource is listed');
  assert.equal(await page.locator('[data-key]').count(), 2, 'the rows of others do not exist');
  await said(page, '#data-count', /^2 rows$/);
  await said(page, '#resource-list .rows', /^2$/); // as the server counts the part
  assert.ok(!requests.some((url) => url.includes('/metrics')), 'the key lacks the right metrics');
  for (const name of ['Get all of it', 'Live', 'Export'])
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name);
  for (const name of ['Proof', 'NDJSON'])
    assert.equal(await page.getByRole('link', { name, exact: true }).count(), 0, name);
  const text = await page.content();
  for (const hidden of ['margin', '7777', 'row-2', 'secret-of-acme'])
    assert.ok(!text.includes(hidden), hidden);
});
