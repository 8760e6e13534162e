import { test, type TestContext } from 'node:test';

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
