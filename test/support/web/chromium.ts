import { chromium, type Browser, type Page } from 'playwright-core';
import { chromiumPath } from '../process/programs.ts';
import { shared } from '../tests-with.ts';

/** A page of a headless Chromium, with its errors and requests. */
export interface Tab {
  readonly page: Page;
  /** Errors on the console, and uncaught errors. */
  readonly errors: readonly string[];
  /** Every URL that the page requested. */
  readonly requests: readonly string[];
}

/**
 * The Chromium that the tests of a file share. Resolves with null and skips the test with the reason when there is none.
 * With REQUIRE_ALL=1 that is an error.
 */
export const openChromium = shared(async (t) => {
  const executablePath = chromiumPath(t);
  if (executablePath === null) return null;
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  t.after(() => browser.close());
  return browser;
});

export async function openTab(
  browser: Browser,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<Tab> {
  const page = await browser.newPage(options);
  const errors: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('request', (request) => requests.push(request.url()));
  return { page, errors, requests };
}
