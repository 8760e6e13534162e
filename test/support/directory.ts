import { rm } from 'node:fs/promises';

/**
 * Removes a test's directory. A test's hooks run in the order in which they were registered, so the server that uses the
 * directory may still be writing: then removal is tried again, for up to 20 seconds.
 */
export function removeDirectory(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
