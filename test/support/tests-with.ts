import { after, test, type TestContext } from 'node:test';

/** Declares a test of a contract, which gets what was opened for it. */
export type ContractTest<Opened> = (
  title: string,
  run: (opened: Opened, t: TestContext) => Promise<void>,
) => void;

/**
 * Returns a function that declares tests, which get what `open` makes. Where it makes nothing, because a program is
 * missing, it skips the test. `name`: what begins the titles, such as an implementation of a port.
 */
export function testsWith<Opened>(
  open: (t: TestContext) => Promise<Opened | null>,
  name?: string,
): ContractTest<Opened> {
  return (title, run) => {
    test(name === undefined ? title : `${name}: ${title}`, async (t) => {
      const opened = await open(t);
      if (opened !== null) await run(opened, t);
    });
  };
}

/**
 * Returns a function that gives each test what `open` makes for the first of them. It is cleaned up after the last test of the
 * file. Call this outside of tests. Where `open` makes nothing, it has skipped the test.
 */
export function shared<Opened>(
  open: (t: TestContext) => Promise<Opened | null>,
): (t: TestContext) => Promise<Opened | null> {
  const cleanups: (() => unknown)[] = [];
  after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });
  let opened: Opened | null | undefined;
  return async (t) =>
    (opened ??= await open({
      after: (cleanup: () => unknown) => cleanups.push(cleanup),
      skip: (reason: string) => t.skip(reason),
    } as unknown as TestContext));
}
