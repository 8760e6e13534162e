import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runLoad, parseLoadArguments } from '../../../src/load/command.ts';
import type { LoadResult } from '../../../src/load/result.ts';

export interface Loaded {
  readonly code: 0 | 1 | 2;
  /** null when the load test did not begin. */
  readonly result: LoadResult | null;
  /** What it wrote to standard error. */
  readonly said: string;
}

/** Runs `sluice load` with these words, as the command line does. */
export async function loading(
  words: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Loaded> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const written = Promise.all([text(stdout), text(stderr)]);
  const command = parseLoadArguments([...words, '--json', '-']);
  const code = await runLoad(command, { stdout, stderr, isTTY: false, signal });
  stdout.end();
  stderr.end();
  const [json, said] = await written;
  return { code, result: json === '' ? null : (JSON.parse(json) as LoadResult), said };
}
