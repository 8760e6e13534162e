import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A new folder, which is removed after the test. */
export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'));
  t.after(() => removeDirectory(folder));
  return folder;
}

/**
 * Removes a test's directory. A test's hooks run in the order in which they were registered, so the server that uses the
 * directory may still be writing: then removal is tried again, for up to 20 seconds.
 */
export function removeDirectory(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
