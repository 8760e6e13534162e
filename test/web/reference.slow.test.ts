import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf } from '../support/answers.ts';
import { addAxe, faultsOf } from '../support/web/axe.ts';
import { openChromium, openTab } from '../support/web/chromium.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { ordersOf, withOrders } from '../support/resources/orders.ts';
import { resourcesFile } from '../support/resources/resources.ts';
import { serverOn } from '../support/process/server.ts';

interface Operation {
  readonly summary: string;
}

test('/docs shows every operation in a browser, contacts no other host, sends requests, and has no serious fault of accessibility', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const orders = await withOrders(t, 'sqlite', ordersOf(30));
  const RESOURCES_FILE = await resourcesFile(t, { resources: { items: {} } });
  const server = await serverOn(t, { ...orders, RESOURCES_FILE });
  const { paths } = (await jsonOf(server.get('/openapi.json'))) as {
    paths: Record<string, Record<string, Operation>>;
  };
  const { page, errors, requests } = await openTab(browser, { viewport: { width: 1400, height: 1000 } });
  await page.goto(`${server.url}/docs`);
  await page.getByRole('heading', { name: 'sluice' }).first().waitFor();
  const known = Object.values(paths).flatMap((methods) => Object.values(methods));
  await page.waitForFunction(
    `${JSON.stringify(known.map(({ summary }) => summary))}.every((one) => document.body.textContent.includes(one))`,
  );

  /** Sends the request that the page fills in by default. */
  const send = async (tag: string, method: string, path: string, pathname = path) => {
    await page.goto('about:blank');
    await page.goto(`${server.url}/docs#tag/${tag}/${method}${path}`);
    const answered = page.waitForResponse(
      (response) => response.request().method() === method && new URL(response.url()).pathname === pathname,
    );
    const name = new RegExp(`test request.*${method} ${path.replace(/[{}]/g, '\\$&')}\\)`, 'i');
    await page.getByRole('button', { name }).first().click();
    await page.getByRole('button', { name: /^send/i }).first().click();
    const response = await answered;
    return response.status();
  };
  assert.equal(await send('exports', 'POST', '/exports'), 202);
  const user = '/api/users/{id}';
  assert.equal(await send('users', 'PUT', user, '/api/users/ada'), 201, 'no condition is filled in');
  assert.equal(await send('resources', 'GET', '/orders/values'), 200, 'a field is filled in');
  await page.goto('about:blank'); // the dialog of the last request covers the link
  await page.goto(`${server.url}/docs`);
  await page.getByRole('link', { name: 'Explorer: look through the rows' }).click();
  await page.getByRole('heading', { name: 'Resources' }).first().waitFor();
  for (const [width, colorScheme, rules] of [
    [1280, 'light', undefined],
    [390, 'dark', ['color-contrast']],
  ] as const) {
    const { page: read } = await openTab(browser, {
      viewport: { width, height: 800 },
      colorScheme,
      bypassCSP: true,
    });
    await read.goto(`${server.url}/docs`);
    await read.getByRole('heading', { name: 'sluice' }).first().waitFor();
    await read.locator('ul.endpoints[tabindex]').first().waitFor({ state: 'attached' });
    await addAxe(read);
    assert.deepEqual(await faultsOf(read, rules), [], `axe at ${width} pixels, ${colorScheme}`);
    await read.close();
  }
  const strangers = requests.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:'));
  assert.deepEqual(strangers, [], 'no other host is contacted');
  assert.deepEqual(errors, [], 'the policy refuses nothing, and nothing fails');
});

test('/docs uses the key of the explorer page, and shows a real row of the resources that it opens', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const rows = ['acme', 'other'].map((tenant, n) => ({ _id: `row-${n}`, tenant, note: `note of ${tenant}` }));
  const keys = [{ name: 'acme', where: { orders: { tenant: 'acme' } }, actions: ['read'] }];
  const server = await keyedServer(t, 'sqlite', keys, [{ name: 'orders', rows, indexes: [['tenant']] }]);
  const { page, errors } = await openTab(browser);
  await page.goto(server.url);
  const dialog = page.getByRole('dialog', { name: 'API key' });
  await dialog.getByLabel('Key').fill('secret-of-acme');
  await page.keyboard.press('Enter');
  await page.waitForSelector('[data-key=row-0]');
  const seen = errors.length; // the 401 that asked for the key
  await page.goto(`${server.url}/docs#tag/resources/GET/orders/{id}`);
  await page.getByText('note of acme').first().waitFor({ state: 'attached' });
  assert.equal(await page.getByText('note of other').count(), 0);
  assert.equal(await page.getByText('Get items').count(), 0, 'the key does not open items');
  const answered = page.waitForResponse((response) => new URL(response.url()).pathname === '/orders/row-0');
  await page
    .getByRole('button', { name: /test request.*GET \/orders\/\{id\}\)/i })
    .first()
    .click();
  await page.getByRole('button', { name: /^send/i }).first().click();
  assert.equal((await answered).status(), 200, 'the id and the key are filled in');
  assert.deepEqual(errors.slice(seen), []);
});
