import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { bearer, keyedServer, type KeyedServer } from '../../support/access/keyed.ts';
import { begun } from '../../support/answers.ts';
import { addAxe, faultsOf } from '../../support/web/axe.ts';
import { openChromium, openTab } from '../../support/web/chromium.ts';
import { said } from '../../support/web/explorer.ts';

const TEXT = 'x'.repeat(100_000);
const ORDERS = {
  name: 'orders',
  rows: Array.from({ length: 200 }, (_, n) => ({ _id: n, text: TEXT })),
  indexes: [],
};
const KEYS = [
  { name: 'all' },
  { name: 'watcher', resources: [], actions: ['metrics'] },
  { name: 'shop', resources: ['orders'] },
];

/** Opens the page with the key of a client. */
async function openAs(page: Page, server: KeyedServer, name: string, place = ''): Promise<void> {
  await page.goto(`${server.url}/${place}`);
  const dialog = page.getByRole('dialog', { name: 'API key' });
  await dialog.getByLabel('Key').fill(bearer(name).authorization.replace('Bearer ', ''));
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await page.waitForSelector('body[data-ready]');
}

test('the explorer shows the open streams by key and resource, and a key without limits cuts one there', async (t) => {
  const browser = await openChromium(t);
  const server = await keyedServer(t, 'sqlite', KEYS, [ORDERS]);
  if (!browser) return;
  const plain = { headers: { 'accept-encoding': 'identity' } };
  const rests = [
    await begun(server.as('shop', '/orders/stream', plain)),
    await begun(server.as('shop', '/orders/stream?follow=true&fields=id', plain)),
  ];
  const { page, errors } = await openTab(browser, {
    viewport: { width: 390, height: 800 },
    bypassCSP: true,
  });
  t.after(() => page.close());
  await openAs(page, server, 'all', '#/');
  await page.getByRole('link', { name: 'Streams', exact: true }).click();
  await said(page, '#streams-open', /^2$/);
  await said(page, '#streams-waiting', /^1$/);
  await said(page, '#streams-following', /^1$/);
  await said(page, '#streams-sums tr', /^shop ?orders ?2 ?1/);
  await addAxe(page);
  assert.deepEqual(await faultsOf(page), [], 'at 390 pixels');
  const width = await page.evaluate<number>('document.documentElement.scrollWidth');
  assert.ok(width <= 390, `the page is ${width} pixels wide`);

  const waiting = page.locator('#streams-rows tr').filter({ hasText: 'waiting' });
  const cut = waiting.getByRole('button', { name: 'Cut the stream of shop, /orders/stream' });
  const { x = 0, width: ofButton = 0 } = (await cut.boundingBox()) ?? {};
  assert.ok(ofButton > 0 && x + ofButton <= 390, 'the button is in sight');
  await cut.click();
  await said(page, '#streams-state', /done/);
  await assert.rejects(rests[0]?.() ?? assert.fail(), /terminated/);
  await said(page, '#streams-open', /^1$/);
  assert.equal(await waiting.count(), 0);
  rests.push(await begun(server.as('shop', '/orders/stream', plain)));
  await said(page, '#streams-open', /^2$/); // by itself
  assert.deepEqual(
    errors.filter((text) => !text.includes('401')),
    [],
  );
});

test('a key with metrics alone sees streams and no way to cut them, and others are offered none', async (t) => {
  const browser = await openChromium(t);
  const server = await keyedServer(t, 'sqlite', KEYS, [ORDERS]);
  if (!browser) return;
  await begun(server.as('shop', '/orders/stream?follow=true&fields=id'));
  const { page } = await openTab(browser);
  t.after(() => page.close());
  await openAs(page, server, 'watcher', '#streams');
  await said(page, '#streams-rows', /shop/);
  assert.equal(await page.getByRole('button', { name: /^Cut/ }).count(), 0);

  const other = await openTab(browser);
  t.after(() => other.page.close());
  await openAs(other.page, server, 'shop', '#streams');
  await other.page.waitForSelector('#part-home:not([hidden])');
  assert.equal(await other.page.getByRole('link', { name: 'Streams', exact: true }).count(), 0);
  assert.ok(!other.requests.some((url) => url.includes('/metrics')), 'the key lacks the right metrics');
});
