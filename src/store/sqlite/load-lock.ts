import { rm } from 'node:fs/promises';
import { DatabaseSync } from '../../sqlite.ts';
import { isBusy } from './errors.ts';

/**
 * The lock of a process that loads a set: that of SQLite on an empty file of its own. The system drops it when the process
 * ends, however that is, so no one has to guess by process ids and clocks, which containers do not share.
 */
export interface LoadLock {
  release(): Promise<void>;
}

/** Takes the lock of a new file. */
export function takeLock(path: string): LoadLock {
  const file = new DatabaseSync(path);
  file.exec('pragma busy_timeout=0; pragma journal_mode=memory; begin exclusive');
  return {
    release: () => {
      file.close();
      return rm(path, { force: true });
    },
  };
}

/** Whether a process holds the lock of a file. */
export function isLocked(path: string): boolean {
  let file: InstanceType<typeof DatabaseSync> | null = null;
  try {
    file = new DatabaseSync(path, { readOnly: true });
    file.exec('pragma busy_timeout=0; pragma schema_version');
    return false;
  } catch (error) {
    return isBusy(error); // else the file is missing
  } finally {
    file?.close();
  }
}
