/**
 * slow-readers-child.ts URL READERS RUNS: starts READERS readers at the same time in each run, in all formats
 * and codings. They take nothing until a line comes on standard input, and then stall at random. Each is
 * compared with the result of a fast reader. Writes lines to standard output: first the lengths of the
 * bodies, then the result of each run. It is a process of its own, so that readers and server do not wait for
 * each other's work.
 */
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { readSlowly, type Coding, type Reading } from './slow-reader.ts';

const FORMATS = ['ndjson', 'json', 'csv'] as const;
/**
 * The shares of ten readers. The difficult part is the path of bytes to a socket, and compression costs time.
 */
const SHARES: Readonly<Record<Coding, number>> = { identity: 8, gzip: 1, br: 1 };
const WAYS = (Object.keys(SHARES) as Coding[]).flatMap((coding) =>
  FORMATS.flatMap((format) => Array.from({ length: SHARES[coding] }, () => ({ format, coding }))),
);
const PACE = { everyBytes: 1_000_000, stallMs: 600 };

/**
 * The result of a run: the number of readers that did not receive every byte and a clean end, the first of
 * them, and the time.
 */
export interface Run {
  readonly readers: number;
  readonly wrong: number;
  readonly first: { readonly format: string; readonly coding: Coding; readonly reading: Reading } | null;
  readonly ms: number;
}

const [server = '', readers = '', runs = ''] = process.argv.slice(2);
const path = (format: string) => `/items/stream?format=${format}`;

const wholes = new Map<string, Buffer>();
for (const format of FORMATS) {
  const response = await fetch(server + path(format), { headers: { 'accept-encoding': 'identity' } });
  wholes.set(format, Buffer.from(await response.arrayBuffer()));
}
say(Math.min(...[...wholes.values()].map(({ length }) => length)));

const commands = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
for (let run = 0; run < Number(runs); run++) {
  const from = commands.next();
  const reading = Promise.all(Array.from({ length: Number(readers) }, (_, n) => read(n, from)));
  await from;
  const started = performance.now();
  const all = await reading;
  const wrong = all.filter(({ right }) => !right);
  say({ readers: all.length, wrong: wrong.length, first: wrong[0] ?? null, ms: performance.now() - started });
}
process.stdin.destroy();

async function read(n: number, from: Promise<unknown>) {
  const { format, coding } = WAYS[(n * 7) % WAYS.length] ?? assert.fail();
  const whole = wholes.get(format) ?? assert.fail();
  const asked = { port: Number(new URL(server).port), path: path(format), coding };
  const reading = await readSlowly(asked, { ...PACE, from }, whole);
  return { format, coding, reading, right: reading.whole && reading.right === whole.length };
}

function say(what: number | Run): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
