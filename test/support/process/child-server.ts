import { spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { buildProgram } from '../../../bench/compiled.ts';
import { testEnvironment } from './server.ts';

const CLI = join(import.meta.dirname, '../../../dist/process/cli.js');
let built: Promise<void> | null = null;

/** The path of the program of this checkout, as `npm start` runs it. Builds it first when src is newer. */
export async function cli(): Promise<string> {
  await (built ??= buildProgram());
  return CLI;
}

/** A server in a process of its own, as users start it. */
export interface ChildServer {
  readonly url: URL;
  readonly pid: number;
  /**
   * The id of the process that listens, or of the first of several. With WORKERS it is not the process that
   * was started.
   */
  readonly listener: number;
  /**
   * Resident memory in bytes, without pages of mapped files, which are the kernel's cache. 0 where /proc is
   * missing.
   */
  rss(): number;
  /** The past and future lines of the log, each once. A loop over them waits for more. */
  readonly log: AsyncIterable<LogLine>;
  /** Resolves with the exit code (null: killed) when the process has ended. */
  readonly ended: Promise<number | null>;
  /** Sends a signal. Resolves with the exit code (null: killed) when the process has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly url?: string;
  /** In lines about settings that were read again. */
  readonly settings?: readonly string[];
  readonly err?: { readonly message: string };
  /** In lines of a request. `end` is how it ended, after `ms` milliseconds. */
  readonly method?: string;
  readonly path?: string;
  readonly end?: string;
  readonly ms?: number;
  /** In lines of a worker that ended. */
  readonly workerPid?: number;
  readonly code?: number | null;
  readonly signal?: string | null;
  readonly exportId?: string;
  /**
   * In lines of loop-hold.mjs: turns of the event loop, the longest turn, and p99.9 of all so far, in
   * milliseconds.
   */
  readonly turns?: number;
  readonly longest?: number;
  readonly p999?: number;
}

/** The command that runs a command, such as that of another account. */
export type CommandOf = (program: string, ...args: string[]) => [string, ...string[]];

/** Runs commands as an account of its own, in a group, with a umask. */
export function asAccount(uid: number, gid: number, umask: string): CommandOf {
  const account = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  return (...command) => ['setpriv', ...account, 'sh', '-c', `umask ${umask}; exec "$0" "$@"`, ...command];
}

/**
 * Starts `sluice serve` with these settings, and stops it after the test. Rejects when it ends before it
 * listens.
 */
export async function childServer(
  t: TestContext,
  environment: Record<string, string>,
  commandOf: CommandOf = (...command) => command,
): Promise<ChildServer> {
  const settings = await testEnvironment(t, { LOG_LEVEL: 'info', ...environment });
  const [program, ...args] = commandOf(process.execPath, await cli(), 'serve');
  const child = spawn(program, args, {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill();
    await gone;
  });
  const pid = child.pid ?? 0;
  const log = logOf(child.stdout);
  const ended = once(child, 'exit').then(([code]: unknown[]) => code as number | null);
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return ended;
  };
  let last: LogLine | null = null;
  for await (const line of log) {
    const { msg, url } = (last = line);
    if (msg === 'listening' && url !== undefined)
      return { url: new URL(url), pid, listener: line.pid, rss: () => rssOf(pid), log, ended, end };
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  const how = child.signalCode ?? String(child.exitCode);
  throw new Error(`the server ended (${how}) before it listened; its last words: ${JSON.stringify(last)}`);
}

/** The next line of the log with this message. */
export async function logged({ log }: ChildServer, message: string): Promise<LogLine> {
  for await (const line of log) if (line.msg === message) return line;
  throw new Error(`the log ended without "${message}"`);
}

/** Buffers the lines that were not read yet, so that the process never waits for a reader of its log. */
function logOf(output: Readable): AsyncIterable<LogLine> {
  const lines = on(createInterface({ input: output }), 'line', { close: ['close'] });
  const next = async (): Promise<IteratorResult<LogLine, undefined>> => {
    const result = (await lines.next()) as IteratorResult<[string], undefined>;
    return result.done === true ? result : { value: JSON.parse(result.value[0]) as LogLine };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) }; // without `return`: a loop that ends leaves the rest to the next one
}

/**
 * Resident memory of a process in bytes, without pages of mapped files. 0 where /proc is missing, NaN while a
 * process ends.
 */
export function rssOf(pid: number): number {
  if (process.platform !== 'linux') return 0;
  const kib = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}
