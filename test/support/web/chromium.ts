import { execFileSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** A page of a headless Chromium, with its errors and requests. */
export interface Tab {
  readonly page: Page;
  /** Errors on the console, and uncaught errors. */
  readonly errors: readonly string[];
  /** Every URL that the page requested. */
  readonly requests: readonly string[];
}

const found = process.env.CHROMIUM ?? NAMES.map(onPath).find((path) => path !== null);

/**
 * Starts Chromium, and closes it after the test. Resolves with null and skips the test with the reason when
 * there is none. With REQUIRE_ALL=1 that is an error.
 */
export async function openChromium(t: Pick<TestContext, 'after' | 'skip'>): Promise<Browser | null> {
  if (found === undefined) {
    const reason = `none of ${NAMES.join(', ')} is installed`;
    if (process.env.REQUIRE_ALL) throw new Error(reason);
    t.skip(reason);
    return null;
  }
  const browser = await chromium.launch({ executablePath: found, args: ['--no-sandbox'] });
  t.after(() => browser.close());
  return browser;
}

export async function openTab(
  browser: Browser,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<Tab> {
  const page = await browser.newPage(options);
  const [errors, requests]: [string[], string[]] = [[], []];
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('request', (request) => requests.push(request.url()));
  return { page, errors, requests };
}

function onPath(name: string): string | null {
  try {
    return execFileSync('which', [name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null; // the exit code of `which` says that there is none
  }
}
