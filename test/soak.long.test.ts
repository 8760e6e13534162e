import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { linePlot } from '../bench/report/svg.ts';
import { childServer, type ChildServer } from './support/child-server.ts';
import { awaited, fileOf, order } from './support/exports.ts';
import { samples } from './support/metrics.ts';
import { usersAt } from './support/users.ts';

const SECONDS = Number(process.env.SOAK_SECONDS ?? 600);
/** The share of the time for warming up: compilation and the growth of pools. */
const WARM = 1 / 3;
const SAMPLE_MS = 2_000;
const MIB = 2 ** 20;

/** Memory in MiB, delays in milliseconds. */
interface Sample {
  readonly seconds: number;
  readonly memory: number;
  readonly heap: number;
  readonly files: number;
  readonly delay: number;
  readonly longestDelay: number;
}

type Figure = Exclude<keyof Sample, 'seconds'>;

/** The plots for the folder PLOTS, if it is set. */
const PLOTS: readonly (readonly [
  file: string,
  title: string,
  y: string,
  lines: Partial<Record<Figure, string>>,
])[] = [
  [
    'soak-memory.svg',
    'Soak: memory of the server',
    'MiB',
    { memory: 'resident', heap: 'heap of JavaScript' },
  ],
  ['soak-files.svg', 'Soak: open files and sockets of the server', 'open', { files: 'files and sockets' }],
  [
    'soak-delay.svg',
    'Soak: how late the event loop was in each 2 s',
    'milliseconds',
    { longestDelay: 'longest', delay: 'p99' },
  ],
];

/** The clients' requests, repeated, each with its concurrency. */
const CLIENTS: readonly (readonly [
  atOnce: number,
  client: (url: string, turn: number) => Promise<unknown>,
])[] = [
  [4, (url, turn) => read(`${url}/items?limit=100&sort=price_asc&offset=${(turn * 97) % 50_000}`, 'br', 200)],
  [
    2,
    (url, turn) =>
      read(`${url}/items/d${String(1 + ((turn * 31) % 50_000)).padStart(5, '0')}`, 'identity', 200),
  ],
  [
    2,
    (url, turn) =>
      read(
        `${url}/items/stream?category=Fair${['', '&checkpoints=true', '&format=csv'][turn % 3] ?? ''}`,
        ['br', 'gzip', 'identity'][turn % 3] ?? '',
        200,
      ),
  ],
  [2, leave],
  [2, (url, turn) => read(`${url}/items?limit=${turn}0000&x=1`, 'identity', 400)],
  [2, writeUsers],
  [1, exportOne],
];

async function read(url: string, coding: string, status: number): Promise<void> {
  const response = await fetch(url, { headers: { 'accept-encoding': coding } });
  await response.arrayBuffer();
  assert.equal(response.status, status, url);
}

async function leave(url: string): Promise<void> {
  const gone = new AbortController();
  const response = await fetch(`${url}/items/stream`, { signal: gone.signal });
  await (response.body as ReadableStream<Uint8Array>).getReader().read();
  gone.abort();
}

async function writeUsers(url: string, turn: number): Promise<void> {
  const users = usersAt(url);
  const id = `u${turn % 100}`;
  await users.put(id, { name: `turn ${turn}`, email: 'a@b', metadata: { turn: String(turn) } });
  await users.send('PATCH', `/api/users/${id}`, { body: { metadata: { more: 'x' } } });
  if (turn % 5 === 0) await users.send('DELETE', `/api/users/${id}`);
}

async function exportOne(url: string): Promise<void> {
  const { id } = await order(url, { category: 'Fair', compression: 'gzip' });
  await fileOf(url, await awaited(url, id));
  await fetch(`${url}/exports/${id}`, { method: 'DELETE' });
}

/**
 * The increase of the lowest value from the first half to the second. Leaked memory raises the minimum, while
 * garbage that is collected late, as on a busy machine, does not.
 */
function growth(points: readonly Sample[], figure: (sample: Sample) => number): number {
  const middle = points.length / 2;
  const floor = (half: readonly Sample[]) => Math.min(...half.map(figure));
  return floor(points.slice(middle)) - floor(points.slice(0, middle));
}

async function sampled(server: ChildServer, seconds: () => number): Promise<Sample[]> {
  const taken: Sample[] = [];
  while (seconds() < SECONDS) {
    const metrics = await samples(server.url); // each read of its delays resets them
    const figure = (name: string) => metrics.get(name) ?? NaN;
    taken.push({
      seconds: seconds(),
      memory: server.rss() / MIB,
      heap: figure('nodejs_heap_size_used_bytes') / MIB,
      files: readdirSync(`/proc/${server.pid}/fd`).length,
      delay: 1000 * figure('nodejs_eventloop_lag_p99_seconds'),
      longestDelay: 1000 * figure('nodejs_eventloop_lag_max_seconds'),
    });
    await pause(SAMPLE_MS);
  }
  return taken;
}

function draw(folder: string, taken: readonly Sample[]): void {
  for (const [file, title, y, names] of PLOTS) {
    const lines = Object.entries(names).map(([figure, name]) => ({
      name,
      points: taken.map((one) => [one.seconds, one[figure as Figure]] as const),
    }));
    const scale = { x: 'linear', y: 'linear' } as const;
    writeFileSync(join(folder, file), linePlot({ title, x: 'seconds', y, scale, lines }));
  }
}

test(`${SECONDS} seconds of everything at once: memory and files stay as they are, nothing goes wrong`, async (t) => {
  const server = await childServer(t, {
    MONGODB_URI: '',
    SAMPLE: 'auto',
    RATE_LIMIT: 'off',
    STREAM_LIMIT: 'off',
    EXPORT_LIMIT: '1000',
  });
  const url = server.url.origin;
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  let turns = 0;
  const clients = CLIENTS.flatMap(([atOnce, client]) =>
    Array.from({ length: atOnce }, async () => {
      while (seconds() < SECONDS) {
        await client(url, turns++);
        await pause(10);
      }
    }),
  );
  const [all] = await Promise.all([sampled(server, seconds), ...clients]);
  if (process.env.PLOTS) draw(process.env.PLOTS, all);
  const taken = all.filter((one) => one.seconds > SECONDS * WARM);
  const [memory, heap, files] = [
    growth(taken, (one) => one.memory),
    growth(taken, (one) => one.heap),
    growth(taken, (one) => one.files),
  ];
  const held = taken.map((one) => one.memory);
  t.diagnostic(
    `${turns} turns; after warming up memory ${Math.min(...held).toFixed(0)} to ${Math.max(...held).toFixed(0)} MiB, ` +
      `its floor growing by ${memory.toFixed(1)} MiB, that of the heap by ${heap.toFixed(1)} MiB, of files by ${files}`,
  );
  while ((await samples(url)).get('sluice_streams_open') !== 0) await pause(10);
  const ended = server.end('SIGTERM');
  for await (const line of server.log) assert.ok(line.level < 50, JSON.stringify(line));
  assert.equal(await ended, 0);
  assert.ok(memory < Math.max(8, 0.1 * Math.min(...held)), 'memory is flat');
  assert.ok(files < 5, 'files are flat');
});
