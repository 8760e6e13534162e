import { after, before, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { testsWith, type ContractTest } from '../tests-with.ts';
import { openChromium, openTab, type Tab } from './chromium.ts';
import type { TestServer } from '../process/server.ts';

type Options = Parameters<typeof openTab>[1];

/** Opens a tab with a place of the explorer page, and closes it after the test. */
export type Open = (place: string, options?: Options) => Promise<Tab>;

/** Waits for an element with this text. */
export const said = (page: Page, selector: string, text: RegExp) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor();

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
  const opener = async (t: TestContext): Promise<Open | null> => {
    const opened = (browser ??= await openChromium({
      after: (close) => whole.after(close),
      skip: (reason) => t.skip(reason),
    }));
    if (!opened) return null;
    return async (place, options = {}) => {
      const tab = await openTab(opened, options);
      t.after(() => tab.page.close());
      await tab.page.goto(`${server.url}/${place}`);
      await tab.page.waitForSelector('body[data-ready]');
      return tab;
    };
  };
  declare(testsWith(opener, 'the explorer page'));
}
