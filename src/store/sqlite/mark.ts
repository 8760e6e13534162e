import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../directory.ts';
import { unlessMissing } from './directory.ts';

/** The mark of a directory that has a store. It distinguishes a store that is gone from one that never was. */
const MARK_FILE = 'sluice.mark';

export interface Mark {
  /** The id of the store. */
  readonly id: string;
  /** How often the store was stopped cleanly. */
  readonly stops: number;
}

/** Null: the directory never had a store. */
export async function readMark(directory: string): Promise<Mark | null> {
  const text = await unlessMissing(readFile(join(directory, MARK_FILE), 'utf8'));
  if (text === null) return null;
  const { id, stops } = JSON.parse(text) as Partial<Mark>;
  if (typeof id !== 'string' || typeof stops !== 'number')
    throw new Error(
      `${join(directory, MARK_FILE)} is damaged: remove it when the store beside it is the right one`,
    );
  return { id, stops };
}

/** Writes the mark durably. */
export async function writeMark(directory: string, mark: Mark): Promise<void> {
  const path = join(directory, MARK_FILE);
  const unfinished = `${path}.${randomUUID()}`;
  await writeFile(unfinished, JSON.stringify(mark), { mode: 0o600, flush: true });
  await rename(unfinished, path);
  await syncDirectory(directory);
}

/** The error for a directory whose mark says that the store should be another one. */
export function storeGone(path: string, found: string): Error {
  return new Error(
    `${path} ${found}, but ${MARK_FILE} beside it says that there was a store: restore a backup, or remove ${MARK_FILE} to begin anew`,
  );
}
