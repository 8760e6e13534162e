import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { shared, testsWith, type ContractTest } from '../tests-with.ts';
import { openChromium, openTab, type Tab } from './chromium.ts';
import type { TestServer } from '../process/server.ts';

type Options = Parameters<typeof openTab>[1];

/** Opens a tab with a place of the explorer page, and closes it after the test. */
export type Open = (place: string, options?: Options) => Promise<Tab>;

/** Waits for an element with this text. */
export const said = (page: Page, selector: string, text: RegExp) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor();

/** Declares tests of the explorer page, for which there is one server. They are skipped without Chromium. */
export function explorer(
  start: (t: TestContext) => Promise<TestServer>,
  declare: (test: ContractTest<Open>) => void,
): void {
  const serverOfFile = shared(start);
  const opener = async (t: TestContext): Promise<Open | null> => {
    const server = await serverOfFile(t);
    const browser = await openChromium(t);
    if (!browser || !server) return null;
    return async (place, options = {}) => {
      const tab = await openTab(browser, options);
      t.after(() => tab.page.close());
      await tab.page.goto(`${server.url}/${place}`);
      await tab.page.waitForSelector('body[data-ready]');
      return tab;
    };
  };
  declare(testsWith(opener, 'the explorer page'));
}
