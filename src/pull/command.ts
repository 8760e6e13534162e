import { readFile } from 'node:fs/promises';
import { printable } from '../terminal/text.ts';
import { STDOUT, type PullCommand } from './arguments.ts';
import { openCopy } from './copy.ts';
import { Interrupted, Refused } from './retry.ts';
import { Run, type PullIo } from './run.ts';

export { parsePullArguments, PULL_HELP, type PullCommand } from './arguments.ts';
export { REAL_CLOCK } from './retry.ts';
export type { PullIo } from './run.ts';

/**
 * Runs a pull and reports the result on stderr. Resolves with the exit code: 0 when the set is whole and
 * proved, otherwise 1.
 */
export async function runPull(command: PullCommand, io: PullIo): Promise<0 | 1> {
  const { output, keyFile } = command;
  try {
    const run = new Run(command, io, keyFile === null ? null : await readKey(keyFile));
    const copy = await openCopy(command, io.stdout);
    if (copy) await run.keep(copy);
    else await (output === STDOUT ? run.toStdout() : run.toFile(output));
    return 0;
  } catch (error) {
    const reason = io.signal.aborted ? 'interrupted' : expectedReason(error);
    const isResumable = output !== STDOUT && !(error instanceof Refused);
    const next = isResumable ? '; run the same command again to continue' : '';
    io.stderr.write(`sluice: ${printable(reason)}${next}\n`);
    return 1;
  }
}

async function readKey(path: string): Promise<string> {
  const [key = ''] = (await readFile(path, 'utf8')).split('\n');
  return key.trim();
}

/** The message of an expected error. An internal error is thrown again. */
function expectedReason(error: unknown): string {
  const isExpected = error instanceof Interrupted || error instanceof Refused;
  if (error instanceof Error && (isExpected || 'code' in error)) return error.message;
  throw error;
}
