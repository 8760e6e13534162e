import { execFileSync } from 'node:child_process';
import type { TestContext } from 'node:test';

/**
 * Where the first of these programs is that runs here; null, and the test skipped with the reason, when none does, which with
 * REQUIRE_ALL=1 is an error. `asked`: arguments that make it say its version, or
 * none when it has no such arguments: then it is enough that it is there.
 */
export function program(t: TestContext, names: readonly string[], asked: readonly string[]): string | null {
  for (const name of names) {
    try {
      if (asked.length > 0) execFileSync(name, asked, { stdio: 'ignore' });
      return execFileSync('sh', ['-c', 'command -v "$0"', name], { encoding: 'utf8' }).trim();
    } catch {
      // the next one
    }
  }
  const reason = `none of ${names.join(', ')} runs here`;
  if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`);
  t.skip(reason);
  return null;
}
