import { execFileSync } from 'node:child_process';
import type { TestContext } from 'node:test';

/**
 * The path of the first of these programs that runs here. When none does, returns null and skips the test
 * with the reason. With REQUIRE_ALL=1 that is an error. `asked`: arguments that make the program print its
 * version. Without arguments it is enough that the program exists.
 */
export function program(
  t: Pick<TestContext, 'skip'>,
  names: readonly string[],
  asked: readonly string[],
): string | null {
  for (const name of names) {
    try {
      if (asked.length > 0) execFileSync(name, asked, { stdio: 'ignore' });
      return execFileSync('sh', ['-c', 'command -v "$0"', name], { encoding: 'utf8' }).trim();
    } catch {
      // try the next one
    }
  }
  const reason = `none of ${names.join(', ')} runs here`;
  if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`);
  t.skip(reason);
  return null;
}

/** The path of Chromium. */
export function chromiumPath(t: Pick<TestContext, 'skip'>): string | null {
  return process.env.CHROMIUM ?? program(t, ['chromium', 'chromium-browser', 'google-chrome'], []);
}
