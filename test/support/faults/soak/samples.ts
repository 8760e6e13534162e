import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { linePlot } from '../../../../bench/report/svg.ts';
import type { ChildServer } from '../../process/child-server.ts';
import { samples } from '../../telemetry/metrics.ts';

/** The share of the time for warming up: compilation and the growth of pools. */
const WARM = 1 / 3;
const SAMPLE_MS = 2_000;
const MIB = 2 ** 20;

/** Memory in MiB, delays in milliseconds. */
export interface Sample {
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
  ['memory.svg', ': memory of the server', 'MiB', { memory: 'resident', heap: 'heap of JavaScript' }],
  ['files.svg', ': open files and sockets of the server', 'open', { files: 'files and sockets' }],
  [
    'delay.svg',
    ': how late the event loop was in each 2 s',
    'milliseconds',
    { longestDelay: 'longest', delay: 'p99' },
  ],
];

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
    const metrics = await samples(server.url, headers); // each read of its delays resets them
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

/** Draws the samples of a server, of which `name` is the beginning of its files and titles. */
export function draw(folder: string, name: string, taken: readonly Sample[]): void {
  for (const [file, title, y, names] of PLOTS) {
    const lines = Object.entries(names).map(([figure, line]) => ({
      name: line,
      points: taken.map((one) => [one.seconds, one[figure as Figure]] as const),
    }));
    const scale = { x: 'linear', y: 'linear' } as const;
    writeFileSync(
      join(folder, `${name.toLowerCase().replaceAll(' ', '-')}-${file}`),
      linePlot({ title: name + title, x: 'seconds', y, scale, lines }),
    );
  }
}

/** Asserts that memory and files of a server are flat once it has warmed up. Returns what it held, in words. */
export function assertFlat(name: string, all: readonly Sample[], most = { files: 5 }): string {
  const begin = WARM * (all.at(-1)?.seconds ?? 0);
  const taken = all.filter((one) => one.seconds > begin);
  const memory = taken.map((one) => one.memory);
  const [least, largest] = [Math.min(...memory), Math.max(...memory)];
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
