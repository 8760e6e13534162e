import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A new folder in `parent`, which is removed after the test. */
export async function temporaryFolder(t: TestContext, parent = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(parent, 'sluice-test-'));
  // A process that was told to end may still be writing.
  cleanLast(t, () => rm(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}

/**
 * Cleans up when all other hooks of a test have run, which is in the order in which they were registered: so what a folder
 * or a database is for is closed before that goes.
 */
export function cleanLast(t: TestContext, clean: () => Promise<unknown>): void {
  t.after(() => {
    t.after(clean);
  });
}
