import { medianOf, perSecond, type Results, type Round, type Series } from '../results.ts';

interface Target {
  readonly figure: string;
  /** The name in the README. Without it, the README does not show the target. */
  readonly headline?: string;
  readonly wanted: string;
  readonly measured: (results: Results) => number;
  readonly reached: (value: number) => boolean;
  readonly shown: (value: number) => string;
}

const times = (value: number) => `${value.toFixed(2)}x`;
const atLeast = (bound: number) => ({
  wanted: `>= ${bound}x`,
  reached: (value: number) => value >= bound,
  shown: times,
});
const atMost = (bound: number) => ({
  wanted: `<= ${bound}x`,
  reached: (value: number) => value <= bound,
  shown: times,
});
const below = (bound: number, unit: string, digits = 1) => ({
  wanted: `<= ${bound} ${unit}`,
  reached: (value: number) => value <= bound,
  shown: (value: number) => `${value.toFixed(digits)} ${unit}`,
});
const rowsPerSecond = (bound: number) => ({
  wanted: `>= ${bound / 1e6}M rows/s`,
  reached: (value: number) => value >= bound,
  shown: (value: number) => `${(value / 1e6).toFixed(2)}M rows/s`,
});

/**
 * The targets of this server. The ratio to the limit shows what remains to be gained. Ratios to peers are
 * only reported.
 */
const TARGETS: readonly Target[] = [
  {
    figure: 'stream in id order, against the bare chain',
    ...atLeast(0.85),
    measured: ratio('stream-id', 'bare chain'),
  },
  {
    figure: 'the same, against Fastify with batches serialized by hand',
    headline: 'stream of a million rows from MongoDB, rows/s against Fastify with batches serialized by hand',
    ...atLeast(15),
    measured: ratio('stream-id', 'fastify'),
  },
  {
    figure: 'stream in price order, against Fastify',
    ...atLeast(3),
    measured: ratio('stream-price', 'fastify'),
  },
  {
    figure: 'page of 100 by price, requests/s against Fastify',
    ...atLeast(4.5),
    measured: ratio('page-price', 'fastify'),
  },
  {
    figure: 'the same page, CPU time of the server',
    ...below(0.12, 'ms', 3),
    measured: pick('page-price', ({ usage, count }) => (usage.server / count) * 1000),
  },
  {
    figure: 'cursor page at row 900,000, p99 against row 0',
    headline: 'cursor page after 900,000 rows, p99 latency against the first page',
    ...atMost(1.2),
    measured: deepAgainstFirst,
  },
  {
    figure: 'stream with br, against @fastify/compress, same quality',
    ...atLeast(4),
    measured: ratio('stream-br', 'fastify + compress, quality 1'),
  },
  {
    figure: 'the same, at its default quality',
    ...atLeast(4),
    measured: ratio('stream-br', 'fastify + compress'),
  },
  {
    figure: 'memory of one slow stream, above idle',
    ...below(40, 'MB'),
    measured: pick('slow-reader', ({ figures }) => figures?.overIdleMB),
  },
  {
    figure: 'memory per stalled reader',
    headline: 'memory of the server for each of 1,000 stalled readers',
    ...below(64, 'KiB'),
    measured: stalled('kibPerReader'),
  },
  { figure: 'pages beside stalled readers, p99 against pages alone', ...atMost(3), measured: besideStalled },
  {
    figure: 'pages beside 8 streams at full speed, p99 against pages alone',
    ...atMost(5),
    measured: besideStreams('mongodb'),
  },
  { figure: 'the same, embedded store', ...atMost(5), measured: besideStreams('lmdb') },
  {
    figure: 'pages beside two exports, p99 against pages alone, worst case',
    ...atMost(3),
    measured: worstOfExports(againstAlone),
  },
  {
    figure: 'memory of exports, above idle, maximum',
    ...below(80, 'MB'),
    measured: worstOfExports(({ figures }) => figures?.megabytesOverIdle),
  },
  {
    figure: 'embedded store, stream by id',
    ...rowsPerSecond(1e6),
    measured: pick('stream-id', perSecond, 'lmdb'),
  },
  {
    figure: 'embedded store, stream by price',
    ...rowsPerSecond(0.5e6),
    measured: pick('stream-price', perSecond, 'lmdb'),
  },
  {
    figure: 'time to the first bytes of a stream, p99',
    ...below(20, 'ms'),
    measured: pick('first-row', ({ latency }) => latency?.p99),
  },
];

/** The table of targets. Those whose scenario was not in the run are left out. */
export function targetTable(results: Results): string {
  return tableOf(results, TARGETS);
}

/** The table of the few figures that the README shows, under its own names. */
export function headlineTable(results: Results): string {
  const shown = TARGETS.flatMap((target) =>
    target.headline === undefined ? [] : [{ ...target, figure: target.headline }],
  );
  return tableOf(results, shown);
}

function tableOf(results: Results, targets: readonly Target[]): string {
  const lines = targets.flatMap(({ figure, wanted, measured, reached, shown }) => {
    const value = measured(results);
    if (Number.isNaN(value)) return [];
    return [`| ${figure} | ${wanted} | ${shown(value)} | ${reached(value) ? 'yes' : 'no'} |`];
  });
  return ['| figure | target | measured | reached |', '|---|---|---|---|', ...lines].join('\n');
}

function find({ scenarios }: Results, name: string, candidate: string, store: string): Series | undefined {
  const scenario = scenarios.find((each) => each.name === name && each.store === store);
  return scenario?.series.find((each) => each.candidate === candidate);
}

function ratio(name: string, other: string): Target['measured'] {
  return (results) =>
    medianOf(find(results, name, 'sluice', 'mongodb'), perSecond) /
    medianOf(find(results, name, other, 'mongodb'), perSecond);
}

function pick(
  name: string,
  value: (round: Round) => number | undefined,
  store = 'mongodb',
): Target['measured'] {
  return (results) => medianOf(find(results, name, 'sluice', store), value);
}

function p99(results: Results, name: string): number {
  return medianOf(find(results, name, 'sluice', 'mongodb'), ({ latency }) => latency?.p99);
}

function deepAgainstFirst(results: Results): number {
  return p99(results, 'cursor-900000') / p99(results, 'cursor-0');
}

/** The scenario with the largest number of readers in the run. */
function mostStalled({ scenarios }: Results): string {
  const names = scenarios
    .filter(({ kind, store }) => kind === 'stalled' && store === 'mongodb')
    .map(({ name }) => name);
  return names.at(-1) ?? '';
}

function stalled(figure: string): Target['measured'] {
  return (results) => pick(mostStalled(results), ({ figures }) => figures?.[figure])(results);
}

function besideStalled(results: Results): number {
  return p99(results, mostStalled(results)) / stalled('aloneP99Ms')(results);
}

function besideStreams(store: string): Target['measured'] {
  return pick('pages-beside-streams', againstAlone, store);
}

function againstAlone({ latency, figures }: Round): number | undefined {
  return latency && figures?.aloneP99Ms && latency.p99 / figures.aloneP99Ms;
}

function worstOfExports(value: (round: Round) => number | undefined): Target['measured'] {
  return ({ scenarios }) => {
    const all = scenarios.filter(({ kind }) => kind === 'exports').flatMap(({ series }) => series);
    const values = all.map((series) => medianOf(series, value)).filter((middle) => !Number.isNaN(middle));
    return values.length > 0 ? Math.max(...values) : NaN;
  };
}
