import { createServer, type RequestListener } from 'node:http';
import { Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parsePullArguments, runPull } from '../../../src/pull/command.ts';
import type { Clock } from '../../../src/pull/pull.ts';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { listening } from '../ports.ts';

/** Collects everything written to it. `seen` is called with each piece. */
export class Kept extends Writable {
  readonly chunks: Buffer[] = [];
  readonly columns = 200;
  seen: (text: string) => void = () => undefined;

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.chunks.push(Buffer.from(chunk));
    this.seen(chunk.toString());
    done();
  }

  /** The functions that a terminal has. */
  cursorTo(): void {
    this.chunks.push(Buffer.from('\r'));
  }

  clearLine(): void {
    this.chunks.push(Buffer.from('\u001b[K'));
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

export interface Pulled {
  readonly code: number;
  readonly out: Buffer;
  /** The text written to stderr. */
  readonly text: string;
}

/** A clock whose pauses do not wait. */
export const INSTANT: Clock = {
  now: () => performance.now(),
  sleep: async (_, signal) => {
    await nextTurn();
    signal.throwIfAborted();
  },
  random: () => 0.5,
};

export interface PullRun {
  readonly clock?: Clock;
  readonly isTTY?: boolean;
  readonly signal?: AbortSignal;
  /** Called with each piece of text that the pull writes to stderr. */
  readonly seen?: (text: string) => unknown;
}

/** Runs `sluice pull` with these arguments, in this process. */
export async function runPullOf(argv: readonly string[], run: PullRun = {}): Promise<Pulled> {
  const stdout = new Kept();
  const stderr = new Kept();
  if (run.seen) stderr.seen = run.seen;
  const { isTTY = false, signal = new AbortController().signal } = run;
  const { clock = INSTANT } = run;
  const code = await runPull(parsePullArguments(argv), { stdout, stderr, isTTY, signal, clock });
  return { code, out: stdout.bytes, text: stderr.bytes.toString() };
}

/** A server whose listeners answer one request each, in order. The last one answers all further requests. */
export async function scriptedServer(
  t: TestContext,
  listeners: readonly RequestListener[],
): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  let next = 0;
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    listeners[Math.min(next++, listeners.length - 1)]?.(request, response);
  });
  return { url: `http://127.0.0.1:${await listening(t, server)}/items/stream`, asked };
}

/** Answers requests of the stream with a listener, and all other requests with 404. */
export function streamOnly(stream: RequestListener): RequestListener {
  return (request, response) => {
    if (request.url?.startsWith('/items/stream')) stream(request, response);
    else response.writeHead(404).end();
  };
}

export const NDJSON = { 'content-type': 'application/x-ndjson' };
export const ROWS_OF_TWO = '{"id":1}\n{"id":2}\n';

export interface Tally {
  readonly cursor: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: number;
}

/** A control line as the server writes it. */
export function controlLine(kind: 'checkpoint' | 'end', tally: Tally): string {
  const crc32 = tally.crc32.toString(16).padStart(8, '0');
  return `${JSON.stringify({ [kind]: { ...tally, crc32 } })}\n`;
}

/** The control line that proves these rows. `count` is their number. */
export function proofOf(kind: 'checkpoint' | 'end', rows: string, count: number): string {
  const bytes = Buffer.from(rows);
  const cursor = count === 0 ? null : `c${count}`;
  return controlLine(kind, { cursor, rows: count, bytes: bytes.length, crc32: crc32(bytes) });
}
