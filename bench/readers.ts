/**
 * node bench/readers.ts URL COUNT
 *
 * So many streams read at full speed, each asked for again at its end, in a process of their own: who measures something
 * else meanwhile must not do this work besides. Answers each line of stdin with the bytes read so far.
 */
import { createInterface } from 'node:readline';
import { readStream } from './reader.ts';

const [url = '', count = ''] = process.argv.slice(2);
let bytes = 0;

/** Resolves when the first bytes are there, and reads on. */
function startReader(): Promise<void> {
  return new Promise((resolve) => {
    const take = (piece: Uint8Array) => {
      bytes += piece.length;
      resolve();
    };
    const read = async (): Promise<never> => {
      for (;;) await readStream(url, 'identity', take);
    };
    void read(); // what it rejects with ends the process
  });
}

await Promise.all(Array.from({ length: Number(count) }, startReader));
process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify({ asked: line, bytes })}\n`);
