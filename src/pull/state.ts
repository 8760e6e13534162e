import { readFile, rename, writeFile } from 'node:fs/promises';
import { codeOf } from '../base/error-reason.ts';
import type { ProvedPlace } from './proof.ts';
import { jsonIn, Refusal } from './retry.ts';

const STATE_VERSION = 1;

/**
 * What the state file of a pull holds: a line with the task, then a line for each proof of a part. A last line that a
 * kill truncated is ignored. The file promises nothing about the data on disk: the next run checks the rows against it.
 */
interface State {
  /** The URL as it was given, and the URLs of its parts in order (the URL itself when there is one part). */
  readonly task: { readonly url: string; readonly parts: readonly string[] };
  /** The proved places of each part, in the order of their proofs. */
  readonly places: readonly (readonly ProvedPlace[])[];
}

/** Resolves with null when there is no file. Rejects with Refusal when the file is not a state. */
export async function readState(path: string): Promise<State | null> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (text === null) return null;
  const [first = '', ...lines] = text.split('\n');
  const { version, task } = parse(first);
  if (version !== STATE_VERSION || !task)
    throw new Refusal(`${path} is not the state of a pull: --restart discards it`);
  const places: ProvedPlace[][] = task.parts.map(() => []);
  for (const line of lines) {
    const { part, place } = parse(line);
    if (part === undefined || !place) break;
    places[part]?.push(place);
  }
  return { task, places };
}

/** Replaces the file: a kill leaves the old state or the new one. */
export async function writeState(path: string, { task, places }: State): Promise<void> {
  const proofs = places.flatMap((ofPart, part) => ofPart.map((place) => proofLine(part, place)));
  const lines = [`${JSON.stringify({ version: STATE_VERSION, task })}\n`, ...proofs];
  await writeFile(`${path}.new`, lines.join(''), { flush: true });
  await rename(`${path}.new`, path);
}

/** The line that says that a part is proved up to a place. */
export function proofLine(part: number, place: ProvedPlace): string {
  return `${JSON.stringify({ part, place })}\n`;
}

/** Whether an error says that a file does not exist. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** The object of a line. It is empty when the line is not JSON, such as one that a kill truncated. */
function parse(line: string): { version?: number; task?: State['task']; part?: number; place?: ProvedPlace } {
  return Object(jsonIn(line)) as ReturnType<typeof parse>;
}
