import { readFileSync } from 'node:fs';
import { reasonOf } from './error-reason.ts';

/** Settings by their names. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is wrong with a secret that is given twice. null: nothing. */
export function twiceGiven(given: Environment, name: string): string | null {
  const file = `${name}_FILE`;
  return given[name] !== undefined && given[file] !== undefined
    ? `${name} and ${file} exclude each other`
    : null;
}

/** The value of a setting, or the first line of the file that it names. Throws an Error that names the setting. */
export function secretOf(given: Environment, name: string): string | undefined {
  const path = given[`${name}_FILE`];
  if (path === undefined) return given[name];
  let line: string;
  try {
    line = readFileSync(path, 'utf8').split('\n', 1).join('').trim();
  } catch (error) {
    throw new Error(`${name}_FILE cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  if (line === '') throw new Error(`${name}_FILE names a file whose first line is empty`);
  return line;
}
