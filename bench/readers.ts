/**
 * node bench/readers.ts URL COUNT
 *
 * Reads COUNT streams at full speed, and requests each again at its end. It is a process of its own, because
 * a process that measures something else must not do this work as well. Answers each line of stdin with the
 * number of bytes read so far.
 */
import { createInterface } from 'node:readline';
import { readStream } from './reader.ts';

const [url = '', count = ''] = process.argv.slice(2);
let bytes = 0;

/** Starts a reader. Resolves when the first bytes have come, and continues to read. */
function startReader(): Promise<void> {
  return new Promise((resolve) => {
    const take = (piece: Uint8Array) => {
      bytes += piece.length;
      resolve();
    };
    const read = async (): Promise<never> => {
      for (;;) await readStream(url, 'identity', take);
    };
    void read(); // a rejection ends the process
  });
}

await Promise.all(Array.from({ length: Number(count) }, startReader));
process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify({ asked: line, bytes })}\n`);
