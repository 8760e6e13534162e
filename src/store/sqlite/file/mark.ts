import { randomUUID } from 'node:crypto';
import { chmod, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../../folder/directory.ts';
import { unlessMissing } from './directory.ts';

/** The mark of a directory that has a store. It distinguishes a store that is gone from one that never was. */
export const MARK_FILE = 'sluice.mark';

export interface Mark {
  readonly id: string;
  /** How often the store was stopped cleanly. */
  readonly stops: number;
  /** How often the store had been stopped, by any process, when something was acknowledged last. */
  readonly writtenAt?: number;
  /** The latest epoch of the file then. */
  readonly epoch?: string;
  /** The name of the start of the system at which that was. Empty where the system has none. */
  readonly boot?: string;
}

/** Null: the directory never had a store. */
export async function readMark(directory: string): Promise<Mark | null> {
  const text = await unlessMissing(readFile(join(directory, MARK_FILE), 'utf8'));
  if (text === null) return null;
  const mark = JSON.parse(text) as Partial<Mark>;
  if (typeof mark.id !== 'string' || typeof mark.stops !== 'number')
    throw new Error(
      `${join(directory, MARK_FILE)} is damaged: remove it when the store beside it is the right one`,
    );
  return mark as Mark;
}

/** Writes the mark of a store's file, for the users who may read and write that. */
export async function writeMark(file: string, mark: Mark): Promise<void> {
  const path = join(dirname(file), MARK_FILE);
  const unfinished = `${path}.${randomUUID()}`;
  await writeFile(unfinished, JSON.stringify(mark), { mode: 0o600, flush: true });
  await chmod(unfinished, (await stat(file)).mode & 0o666);
  await rename(unfinished, path);
  await syncDirectory(dirname(file));
}

/** Changes a part of the mark. A file without a mark has had no stop. */
export async function changeMark(file: string, change: Partial<Mark> & Pick<Mark, 'id'>): Promise<void> {
  await writeMark(file, { stops: 0, ...(await readMark(dirname(file))), ...change });
}

/** The error for a directory whose mark says that the store should be another one. */
export function storeGone(path: string, found: string): Error {
  return new Error(
    `${path} ${found}, but ${MARK_FILE} beside it says that there was a store: restore a backup, or remove ${MARK_FILE} to begin anew`,
  );
}
