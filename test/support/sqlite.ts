import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { Slots } from '../../src/store/slots.ts';
import { openSqlite, type SqliteOptions } from '../../src/store/sqlite.ts';
import type { OpenStore } from '../store.contract.ts';
import { removeDirectory } from './directory.ts';

/** A directory that is removed after the test. */
export async function testDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-sqlite-'));
  t.after(() => removeDirectory(directory));
  return directory;
}

/** A new embedded store. */
export async function testSqlite(
  t: TestContext,
  options: Partial<SqliteOptions> = {},
): Promise<OpenStore & { readonly directory: string }> {
  const directory = await testDirectory(t);
  const slots = new Slots();
  const store = await openSqlite({ directory, slots, ...options });
  t.after(() => store.close());
  const remove = async (_id: unknown): Promise<void> => {
    await store.items.remove?.([makeBookmark({ _id })]);
  };
  return { store, slots, remove, directory };
}
