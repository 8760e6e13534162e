import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../error-reason.ts';
import type { Finding } from '../finding.ts';
import { check } from './check.ts';
import { RESERVE_BYTES } from './core.ts';
import { freeBytes } from './errors.ts';
import { sizeOf } from './directory.ts';
import { FILE } from './file.ts';
import { mmapBytesIn } from './file-system.ts';

/** Examines the embedded store in a directory for what the server promises, and writes nothing. */
export async function examineSqlite(directory: string, report: (finding: Finding) => void): Promise<void> {
  const see = async (promise: string, query: string, look: () => Promise<string>): Promise<void> => {
    try {
      report({ promise, holds: true, seen: `${query}: ${await look()}` });
    } catch (error) {
      report({ promise, holds: false, seen: `${query}: ${reasonOf(error)}` });
    }
  };
  const path = join(directory, FILE);
  if (!(await sizeOf(path))) {
    const seen = `stat: ${path} is missing or empty: the first start of the server makes it`;
    report({ promise: 'there is a store', holds: false, seen });
    return;
  }
  await see('the store is on a local disk', 'statfs', async () => {
    await mmapBytesIn(directory);
    return directory;
  });
  await see('this user may write it', 'access', async () => {
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return directory;
  });
  await see('there is space for writes', 'statfs', () => {
    const bytes = freeBytes(directory);
    const free = `${Math.round(bytes / 2 ** 20)} MiB are free`;
    return bytes < RESERVE_BYTES ? Promise.reject(new Error(free)) : Promise.resolve(free);
  });
  await see('every row and index entry is whole', 'sluice check', async () => {
    const lines: string[] = [];
    const faults = await check(path, (line) => lines.push(line));
    if (faults > 0) throw new Error(lines.join('; '));
    return lines.join('; ');
  });
}
