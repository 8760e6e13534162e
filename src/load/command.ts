import { readFile, writeFile } from 'node:fs/promises';
import { Interrupted, Refused } from '../pull/retry.ts';
import { printable } from '../terminal/text.ts';
import { codeOf, reasonOf } from '../thrown.ts';
import { Requests } from './http/requests.ts';
import { startLive } from './live.ts';
import type { LoadCommand } from './options.ts';
import { planOf } from './plan.ts';
import type { LoadResult, Target } from './result.ts';
import { Run } from './run.ts';
import { summaryOf } from './summary.ts';
import { describe, NoTarget } from './target.ts';

export { parseLoadArguments } from './arguments.ts';
export { LOAD_HELP } from './help.ts';

export interface LoadIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Whether stderr is a terminal. */
  readonly isTTY: boolean;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
}

const STDOUT = '-';

/**
 * Runs a load test and reports it. Resolves with the exit code: 0 when all answers were good, 1 when some were not or the
 * test could not begin, 2 when at least one was wrong.
 */
export async function runLoad(command: LoadCommand, io: LoadIo): Promise<0 | 1 | 2> {
  try {
    const result = await load(command, io);
    const { json } = command;
    const text = `${JSON.stringify(result)}\n`;
    if (json === STDOUT) io.stdout.write(text);
    else if (json !== null) await writeFile(json, text);
    (json === STDOUT ? io.stderr : io.stdout).write(summaryOf(result));
    return result.verdict.exitCode;
  } catch (error) {
    const isExpected =
      error instanceof NoTarget || error instanceof Refused || error instanceof Interrupted || codeOf(error);
    if (!isExpected) throw error;
    io.stderr.write(`sluice: ${printable(reasonOf(error))}\n`);
    return 1;
  }
}

async function load(command: LoadCommand, { stderr, isTTY, signal }: LoadIo): Promise<LoadResult> {
  const { url, keyFile } = command;
  const requests = new Requests(url, keyFile === null ? null : await readKey(keyFile));
  const prefix = url.pathname.replace(/\/+$/, '');
  const described = await describe(requests, prefix);
  const plan = await planOf(command, requests, prefix, described, Math.random);
  const live = startLive(stderr, isTTY);
  try {
    warn(command, described.target, (text) => live.line(text));
    return await new Run(command, plan, described.target, requests, live, signal).run();
  } finally {
    live.stop();
  }
}

/** Whoever measures the rate limit should know that. */
function warn({ pages }: LoadCommand, { rateLimit }: Target, tell: (text: string) => void): void {
  if (rateLimit === null || pages === null) return;
  const allowed = rateLimit.requests / rateLimit.windowSeconds;
  if (pages === 'max' || pages > allowed)
    tell(
      `the rate limit of the server is ${rateLimit.requests} requests in ${rateLimit.windowSeconds} s for this client; above it, answers are 429 (RATE_LIMIT=off lifts it)`,
    );
}

async function readKey(path: string): Promise<string> {
  const [key = ''] = (await readFile(path, 'utf8')).split('\n');
  return key.trim();
}
