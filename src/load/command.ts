import { readFile, writeFile } from 'node:fs/promises';
import { Interruption, Refusal } from '../pull/retry.ts';
import { printable } from '../terminal/text.ts';
import { codeOf, reasonOf } from '../base/error-reason.ts';
import { Requests } from './http/requests.ts';
import { startLive } from './live.ts';
import type { LoadCommand } from './options.ts';
import { planOf } from './plan.ts';
import type { LoadResult, Target } from './result.ts';
import { Run } from './run.ts';
import { compare, comparisonLines } from './report/compare.ts';
import { reportOf } from './report/page.ts';
import { summaryOf } from './summary.ts';
import { describe, NoTarget } from './target.ts';

export { parseLoadArguments } from './arguments.ts';
export { LOAD_HELP } from './help.ts';

interface LoadIo {
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
    const before = command.compare === null ? null : await readResult(command.compare);
    const result = await load(command, io);
    await write(result, before, command, io);
    return result.verdict.exitCode;
  } catch (error) {
    const isExpected = [NoTarget, NoResult, Refusal, Interruption].some((type) => error instanceof type);
    if (!isExpected && !codeOf(error)) throw error;
    io.stderr.write(`sluice: ${printable(reasonOf(error))}\n`);
    return 1;
  }
}

async function write(
  result: LoadResult,
  before: LoadResult | null,
  { json, report }: LoadCommand,
  { stdout, stderr }: LoadIo,
): Promise<void> {
  const text = `${JSON.stringify(result)}\n`;
  if (json === STDOUT) stdout.write(text);
  else if (json !== null) await writeFile(json, text);
  if (report !== null) await writeFile(report, reportOf(result, before ?? undefined));
  const lines = before ? comparisonLines(compare(before, result)).map((line) => `${printable(line)}\n`) : [];
  (json === STDOUT ? stderr : stdout).write([summaryOf(result), ...lines].join(''));
}

/** The file of --compare is no result of a load test. */
class NoResult extends Error {
  override readonly name = 'NoResult';
}

/** Reads the file before the run, so that a wrong name does not cost one. */
async function readResult(path: string): Promise<LoadResult> {
  const text = await readFile(path, 'utf8');
  try {
    const result = JSON.parse(text) as Partial<LoadResult> | null;
    if (result?.form === 1) return result as LoadResult;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new NoResult(`--compare: ${path} is not what --json of this version writes`);
}

async function load(command: LoadCommand, { stderr, isTTY, signal }: LoadIo): Promise<LoadResult> {
  const { url, keyFile, writeKeyFile, trace } = command;
  const requests = new Requests(url, await readKey(keyFile), trace);
  const prefix = url.pathname.replace(/\/+$/, '');
  const { metrics, metricsKeyFile } = command;
  const metricsAt =
    metrics === null
      ? { requests, path: `${prefix}/metrics` }
      : { requests: new Requests(metrics, await readKey(metricsKeyFile)), path: metrics.pathname };
  const described = await describe(requests, prefix, metricsAt);
  const keys = { requests, writeKey: await readKey(writeKeyFile) };
  const plan = await planOf(command, keys, prefix, described, Math.random);
  const live = startLive(stderr, isTTY);
  try {
    warn(command, described.target, (text) => live.line(text));
    return await new Run(command, plan, described.target, { requests, metricsAt }, live, signal).run();
  } finally {
    live.stop();
  }
}

/** A measurement of the rate limit should say so. */
function warn({ pages }: LoadCommand, { rateLimit }: Target, print: (text: string) => void): void {
  if (rateLimit === null || pages === null) return;
  const allowed = rateLimit.requests / rateLimit.windowSeconds;
  if (pages === 'max' || pages > allowed)
    print(
      `the rate limit of the server is ${rateLimit.requests} requests in ${rateLimit.windowSeconds} s for this client; above it, answers are 429 (RATE_LIMIT=off lifts it)`,
    );
}

async function readKey(path: string | null): Promise<string | null> {
  if (path === null) return null;
  const [key = ''] = (await readFile(path, 'utf8')).split('\n');
  return key.trim();
}
