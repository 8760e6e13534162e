import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import type { Browser } from 'playwright-core';
import { onEach, type ContractTest } from '../../contracts/adapters.ts';
import { openChromium, openTab, whyNoChromium, type Tab } from './chromium.ts';
import type { TestServer } from '../process/server.ts';

type Options = Parameters<typeof openTab>[1];

/** Opens a tab with a place of the explorer page, and closes it after the test. */
export type Open = (place: string, options?: Options) => Promise<Tab>;

/** Declares tests of the explorer page, for which there is one server and one browser. They are skipped without Chromium. */
export function explorer(
  start: (whole: TestContext) => Promise<TestServer>,
  declare: (test: ContractTest<Open>) => void,
): void {
  let server: TestServer;
  let browser: Browser | null = null;
  const cleanups: (() => void | Promise<void>)[] = [];
  const whole = {
    after: (cleanup: () => void | Promise<void>) => cleanups.push(cleanup),
  } as unknown as TestContext;
  before(async () => {
    server = await start(whole);
  });
  after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });
  const opener =
    (t: TestContext): Open =>
    async (place, options = {}) => {
      browser ??= (await openChromium(whole)) ?? assert.fail('the test is not skipped without Chromium');
      const tab = await openTab(browser, options);
      t.after(() => tab.page.close());
      await tab.page.goto(`${server.url}/${place}`);
      await tab.page.waitForSelector('body[data-ready]');
      return tab;
    };
  onEach(
    [{ name: 'the explorer page', skip: whyNoChromium(), open: (t) => Promise.resolve(opener(t)) }],
    declare,
  );
}
