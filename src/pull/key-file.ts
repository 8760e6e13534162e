import { readFile } from 'node:fs/promises';
import { reasonOf } from '../base/error-reason.ts';
import { Refusal } from './retry.ts';

/** The API key in a file: its first line. Rejects with Refusal where there is none. */
export async function readKey(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new Refusal(`the key file cannot be read: ${reasonOf(error)}`, { cause: error });
  });
  const key = text.split('\n', 1).join('').trim();
  if (key === '') throw new Refusal(`the first line of the key file ${path} is empty`);
  return key;
}
