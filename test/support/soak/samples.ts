import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { linePlot } from '../../../bench/report/svg.ts';
import type { ChildServer } from '../child-server.ts';
import { samples } from '../metrics.ts';

export const SECONDS = Number(process.env.SOAK_SECONDS ?? 600);
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

/** Samples of a server until the time is over. */
export async function sampled(
  server: ChildServer,
  seconds: () => number,
  headers: Readonly<Record<string, string>> = {},
): Promise<Sample[]> {
  const taken: Sample[] = [];
  while (seconds() < SECONDS) {
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

/** What a server holds after it has warmed up, and by how much that grows. */
export function held(all: readonly Sample[]) {
  const taken = all.filter((one) => one.seconds > SECONDS * WARM);
  const memory = taken.map((one) => one.memory);
  return {
    memory: [Math.min(...memory), Math.max(...memory)] as const,
    growth: growth(taken, (one) => one.memory),
    growthOfHeap: growth(taken, (one) => one.heap),
    growthOfFiles: growth(taken, (one) => one.files),
  };
}
