import assert from 'node:assert/strict';
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { linePlot } from '../../../../bench/report/svg.ts';
import type { ChildServer } from '../../process/child-server.ts';
import { samples } from '../../telemetry/metrics.ts';

/** The share of the time for warming up: compilation and the growth of pools. */
const WARM = 1 / 3;
const SAMPLE_MS = 2_000;
const MIB = 2 ** 20;

/** Memory in MiB. Sockets are files, too. */
export interface Sample {
  readonly seconds: number;
  readonly memory: number;
  readonly heap: number;
  readonly files: number;
  readonly sockets: number;
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

/** The time since the beginning of a soak. */
export interface Clock {
  readonly seconds: () => number;
  readonly isOver: () => boolean;
}

export function clockOf(length: number): Clock {
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  return { seconds, isOver: () => seconds() > length };
}

/** Samples of a server until the time is over. */
export async function sampled(
  server: ChildServer,
  { seconds, isOver }: Clock,
  headers: Readonly<Record<string, string>> = {},
): Promise<Sample[]> {
  const taken: Sample[] = [];
  while (!isOver()) {
    const metrics = await samples(server.url, headers);
    const figure = (name: string) => metrics.get(name) ?? NaN;
    taken.push({
      seconds: seconds(),
      memory: server.rss() / MIB,
      heap: figure('nodejs_heap_size_used_bytes') / MIB,
      ...filesOf(server.pid),
    });
    await pause(SAMPLE_MS);
  }
  return taken;
}

function filesOf(pid: number): Pick<Sample, 'files' | 'sockets'> {
  const folder = `/proc/${pid}/fd`;
  const all = readdirSync(folder);
  const isSocket = (name: string) => {
    try {
      return readlinkSync(join(folder, name)).startsWith('socket:');
    } catch {
      return false; // closed since it was listed
    }
  };
  return { files: all.length, sockets: all.filter(isSocket).length };
}

/** Draws the memory of a server. `name` begins its file and its title. */
export function draw(folder: string, name: string, taken: readonly Sample[]): void {
  const lines = (['memory', 'heap'] as const).map((figure) => ({
    name: { memory: 'resident', heap: 'heap of JavaScript' }[figure],
    points: taken.map((one) => [one.seconds, one[figure]] as const),
  }));
  const scale = { x: 'linear', y: 'linear' } as const;
  writeFileSync(
    join(folder, `${name.toLowerCase().replaceAll(' ', '-')}-memory.svg`),
    linePlot({ title: `${name}: memory of the server`, x: 'seconds', y: 'MiB', scale, lines }),
  );
}

/** Asserts that memory and files of a server are flat once it has warmed up. Returns what it held, in words. */
export function assertFlat(name: string, all: readonly Sample[], most = { files: 5 }): string {
  const begin = WARM * (all.at(-1)?.seconds ?? 0);
  const taken = all.filter((one) => one.seconds > begin);
  const memory = taken.map((one) => one.memory);
  const least = Math.min(...memory);
  const largest = Math.max(...memory);
  const [more, heap, files] = (['memory', 'heap', 'files'] as const).map((figure) =>
    growth(taken, (one) => one[figure]),
  ) as [number, number, number];
  assert.ok(more < Math.max(8, 0.1 * least), `memory of ${name} grows by ${more} MiB from ${least}`);
  assert.ok(files < most.files, `${name} has ${files} more files`);
  return (
    `${name}: memory ${least.toFixed(0)} to ${largest.toFixed(0)} MiB, its floor growing by ${more.toFixed(1)} MiB, ` +
    `that of the heap by ${heap.toFixed(1)} MiB, of files by ${files}`
  );
}

/** The most memory of a server under mixed work. MiB. */
const MOST_MIB = 400;

/**
 * Asserts that memory of a server is bounded, that the heap of one that collects its garbage all the time is flat, and that it
 * has no more files at rest than once it had warmed up. Pools of connections begin anew with each primary, so their sockets
 * are as many as they were at any time of the first half. Returns what it held, in words.
 */
export function assertBounded(name: string, all: readonly Sample[], rest: readonly Sample[]): string {
  const begin = WARM * (all.at(-1)?.seconds ?? 0);
  const taken = all.filter((one) => one.seconds > begin);
  const memory = [...taken, ...rest].map((one) => one.memory);
  const others = ({ files, sockets }: Sample) => files - sockets;
  const files = Math.min(...taken.map(others));
  const filesAtRest = Math.min(...rest.map(others));
  const sockets = Math.max(...taken.slice(0, taken.length / 2).map((one) => one.sockets));
  const socketsAtRest = Math.min(...rest.map((one) => one.sockets));
  const most = Math.max(...memory);
  const heap = Math.min(...taken.map((one) => one.heap));
  const more = growth(taken, (one) => one.heap);
  assert.ok(most < MOST_MIB, `memory of ${name}: ${most} MiB`);
  assert.ok(more < Math.max(8, 0.1 * heap), `the heap of ${name} grows by ${more} MiB from ${heap}`);
  assert.ok(filesAtRest <= files + 2, `files of ${name}: ${files}, then ${filesAtRest}`);
  assert.ok(socketsAtRest <= sockets, `sockets of ${name}: ${sockets}, then ${socketsAtRest}`);
  return (
    `${name}: memory ${Math.min(...memory).toFixed(0)} to ${most.toFixed(0)} MiB, its heap at least ${heap.toFixed(0)} MiB and its ` +
    `floor growing by ${more.toFixed(1)} MiB, files at least ${files}, ${filesAtRest} at rest, sockets up to ${sockets}, ${socketsAtRest} at rest`
  );
}
