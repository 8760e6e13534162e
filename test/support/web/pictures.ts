/** npm run pictures: makes the pictures of the explorer page in docs/images. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ObjectId, type Document } from 'mongodb';
import { chromium, type Browser, type Page } from 'playwright-core';
import { chromiumPath } from '../process/programs.ts';
import { withOrders } from '../resources/orders.ts';
import { serverOn } from '../process/server.ts';

/** The pictures of the documents: a part of the page, its width and its colours. */
const PICTURES = [
  ['home', 1280, 'light'],
  ['row', 1280, 'light'],
  ['rows', 1280, 'dark'],
  ['take', 1280, 'light'],
  ['proof', 1280, 'light'],
  ['rows', 390, 'light'],
  ['proof', 390, 'dark'],
] as const;

type Part = (typeof PICTURES)[number][0];
type Scheme = 'light' | 'dark';
const HEIGHTS: Readonly<Record<number, number>> = { 1280: 800, 390: 780 };
const STATUSES = ['delivered', 'paid', 'packed', 'returned', 'shipped'];
const COUNTRIES = ['NL', 'DE', 'FR', 'BE', 'ES', 'IT'];
const GOODS = ['Lamp', 'Desk', 'Chair', 'Shelf', 'Rug', 'Mirror', 'Clock'];

const cleanups: (() => void | Promise<void>)[] = [];
const context = {
  after: (cleanup: () => void | Promise<void>) => cleanups.push(cleanup),
  skip: (reason: string) => process.stderr.write(`${reason}\n`),
} as unknown as TestContext;

try {
  await main();
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}

async function main(): Promise<void> {
  const executablePath = chromiumPath(context);
  if (executablePath === null) throw new Error('there is no Chromium');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  context.after(() => browser.close());
  const settings = await withOrders(
    context,
    'sqlite',
    Array.from({ length: 24_000 }, (_, n) => orderOf(n)),
  );
  const server = await serverOn(context, { ...settings, SAMPLE: 'on' });
  const into = join(import.meta.dirname, '../../../docs/images');
  for (const [part, width, scheme] of PICTURES) {
    const page = await openPage(browser, width, scheme);
    await show(page, server.url, part, width);
    await page.screenshot({ path: join(into, `${part}-${width}-${scheme}.png`) });
    await page.close();
  }
}

function openPage(browser: Browser, width: number, colorScheme: Scheme): Promise<Page> {
  return browser.newPage({
    viewport: { width, height: HEIGHTS[width] ?? 800 },
    colorScheme,
    locale: 'en-GB',
    timezoneId: 'Europe/Amsterdam',
    reducedMotion: 'reduce',
  });
}

async function show(page: Page, url: string, part: Part, width: number): Promise<void> {
  if (part === 'home') {
    await page.goto(url);
    await page.locator('#home-rows tr').first().waitFor();
    return;
  }
  if (part === 'proof') return proof(page, url);
  await page.goto(`${url}/#/orders?status=paid&sort=createdAt_desc`);
  await page.waitForSelector('#row-3:not(.coming)');
  await page.locator('.value-count').filter({ hasText: /\d/ }).first().waitFor({ state: 'attached' });
  await page
    .locator('#data-count')
    .filter({ hasText: /^[\d,]+ rows$/ })
    .waitFor();
  if (part === 'row') await page.locator('#row-3').click();
  if (part === 'take') await page.getByRole('button', { name: 'Get all of it' }).click();
  if (part === 'take' && width > 500) await page.locator('#snippet-programs').getByText('polars').click();
}

/** A stream of the catalogue that was cut once, and its end. */
async function proof(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/#proof/items`);
  await page.getByRole('button', { name: 'Start' }).click();
  await page
    .locator('#stream-proved')
    .filter({ hasText: /^[1-9]/ })
    .waitFor();
  await page.getByRole('button', { name: 'Kill the connection' }).click();
  await page
    .locator('#stream-state')
    .filter({ hasText: /^running again/ })
    .waitFor();
  await page.waitForSelector('#checksum[data-state=good]', { timeout: 60_000 });
}

function orderOf(n: number): Document {
  const lines = Array.from({ length: 1 + (n % 3) }, (_, at) => ({
    sku: `${GOODS[(n + at) % GOODS.length] ?? ''}-${100 + ((n * 7 + at) % 900)}`,
    quantity: 1 + ((n + at) % 4),
    price: ((n * 7919 + at * 131) % 30_000) / 100,
  }));
  const total = lines.reduce((sum, { quantity, price }) => sum + quantity * price, 0);
  return {
    _id: new ObjectId(
      (0x65a10000 + n * 977).toString(16).padStart(8, '0') + n.toString(16).padStart(16, 'a'),
    ),
    number: 100_000 + n,
    status: STATUSES[((n * 40_503) >> 5) % STATUSES.length],
    createdAt: new Date(Date.UTC(2026, 0, 1) + ((n * 7_919_317) % 26_000_000) * 1000),
    customer: { name: `Customer ${(n * 31) % 4000}`, country: COUNTRIES[(n * 5) % COUNTRIES.length] },
    total: Math.round(total * 100) / 100,
    lines,
    gift: n % 9 === 0,
    ...(n % 4 === 0 && { note: 'Please ring the bell twice.' }),
  };
}
