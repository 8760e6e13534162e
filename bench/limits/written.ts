import { createInterface } from 'node:readline';
import type { Drained } from './asked.ts';

/** Answers each line of stdin, `{"rows":N}`, after `write` has written N rows into an empty store. */
export async function answerRows(write: (rows: number) => Promise<Drained>): Promise<void> {
  process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    const { rows } = JSON.parse(line) as { rows: number };
    process.stdout.write(`${JSON.stringify(await write(rows))}\n`);
  }
}
