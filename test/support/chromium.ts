import { execFileSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** A page of a headless Chromium, and what it said and asked for. */
export interface Tab {
  readonly page: Page;
  /** Errors of the console, and those nobody caught. */
  readonly errors: readonly string[];
  /** Every URL the page asked for. */
  readonly requests: readonly string[];
}

/** Chromium, closed after the test; null (and the test skipped, with the reason) where there is none. */
export async function openChromium(t: Pick<TestContext, 'after' | 'skip'>): Promise<Browser | null> {
  const executablePath = process.env.CHROMIUM ?? NAMES.map(onPath).find((path) => path !== null);
  if (executablePath === undefined) {
    const reason = `none of ${NAMES.join(', ')} is installed`;
    if (process.env.REQUIRE_ALL) throw new Error(reason);
    t.skip(reason);
    return null;
  }
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
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
    return null; // `which` says by its exit code that there is none
  }
}
