import { test, type TestContext } from 'node:test';

/**
 * Returns a function that declares tests, which get what `open` makes. Where it makes nothing, because a program is
 * missing, it skips the test.
 */
export function testsWith<Opened>(open: (t: TestContext) => Promise<Opened | null>) {
  return (title: string, run: (opened: Opened, t: TestContext) => Promise<void>): void => {
    test(title, async (t) => {
      const opened = await open(t);
      if (opened !== null) await run(opened, t);
    });
  };
}
