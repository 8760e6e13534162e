import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { parseImportArguments, runImport } from '../../../src/import/command.ts';
import { UsageError } from '../../../src/terminal/arguments.ts';
import { temporaryFolder } from '../directory.ts';
import { Kept } from '../pull/pulling.ts';
import { ImportStore } from './import-store.ts';

/** Imports a file of this name and content by its name alone, and gives the rows and what the command said. */
export async function imported(t: TestContext, name: string, content: string | Buffer, ...options: string[]) {
  const file = join(await temporaryFolder(t), name);
  await writeFile(file, content);
  const store = new ImportStore();
  const stderr = Object.assign(new Kept(), { isTTY: false });
  const io = { stdin: Readable.from([]), stderr, isTTY: false, place: 'the test' };
  const target = { exists: false, open: () => Promise.resolve(store) };
  const { signal } = new AbortController();
  try {
    const code = await runImport(parseImportArguments([file, ...options]), target, { ...io, signal });
    return { code, rows: store.documents, said: String(stderr.bytes) };
  } catch (error) {
    if (error instanceof UsageError) return { code: 2, rows: store.documents, said: error.message };
    throw error;
  }
}
