import { perSecond, type Results } from '../results.ts';
import { atLeast, atMost, below, thousandRowsPerSecond } from './bounds.ts';
import {
  against,
  againstAlone,
  besideStalled,
  besideStreams,
  cpuOfChanges,
  cpuOfMillion,
  cpuOfRequest,
  deepAgainstFirst,
  manyAgainstFew,
  pick,
  ratio,
  stalled,
  toAllFollowers,
  worstAgainst,
  worseOf,
  worstOfExports,
  type Measured,
} from './measures.ts';

interface Target {
  readonly figure: string;
  /** The name in the README. Without it, the README does not show the target. */
  readonly headline?: string;
  readonly wanted: string;
  readonly measured: Measured;
  readonly reached: (value: number) => boolean;
  readonly shown: (value: number) => string;
}

/**
 * The targets of this server. The ratio to the limit shows what remains to be gained. Ratios to peers are
 * only reported.
 */
const TARGETS: readonly Target[] = [
  {
    figure: 'stream in id order, CPU time of the server for a million rows',
    ...below(0.9, 's', 2),
    measured: pick('stream-id', cpuOfMillion),
  },
  {
    figure: 'the same, embedded store',
    ...below(0.85, 's', 2),
    measured: pick('stream-id', cpuOfMillion, 'sqlite'),
  },
  {
    figure: 'the same as Arrow, embedded store',
    ...below(0.85, 's', 2),
    measured: pick('stream-arrow', cpuOfMillion, 'sqlite'),
  },
  {
    figure: 'stream in id order, against Fastify with batches serialized by hand',
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
    headline: 'page of 100 rows from MongoDB, requests/s against Fastify',
    ...atLeast(4.5),
    measured: ratio('page-price', 'fastify'),
  },
  {
    figure: 'the same page, CPU time of the server',
    ...below(0.25, 'ms', 3),
    measured: pick('page-price', cpuOfRequest),
  },
  {
    figure: 'cursor page at row 900,000, p99 against row 0',
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
    figure: '64 streams, first requests to a new server, CPU time for a million rows',
    ...below(1.5, 's', 2),
    measured: pick('streams-64-fresh', cpuOfMillion),
  },
  {
    figure: 'CPU time for a row of 256 streams, against one of 8, the worse store',
    ...atMost(1.15),
    measured: manyAgainstFew,
  },
  {
    figure: 'memory for each of 1,000 stalled readers',
    headline: 'memory of the server for each of 1,000 stalled readers',
    ...below(80, 'KiB'),
    measured: pick('stalled-1000', ({ figures }) => figures?.kibPerReader),
  },
  {
    figure: 'memory for each of 5,000 stalled readers',
    ...below(50, 'KiB'),
    measured: pick('stalled-5000', ({ figures }) => figures?.kibPerReader),
  },
  { figure: 'memory above idle when they have left', ...below(48, 'MB'), measured: stalled('keptMB') },
  { figure: 'pages beside stalled readers, p99 against pages alone', ...atMost(3), measured: besideStalled },
  {
    figure: 'pages beside 8 streams at full speed, p99 against pages alone',
    ...atMost(5),
    measured: besideStreams('mongodb'),
  },
  { figure: 'the same, embedded store', ...atMost(5), measured: besideStreams('sqlite') },
  {
    figure: 'pages beside two exports, p99 against pages alone, worst case',
    ...atMost(3),
    measured: worstOfExports(againstAlone),
  },
  {
    figure: 'memory of exports, above idle, maximum',
    ...below(80, 'MB'),
    measured: worstOfExports(
      ({ figures }) => figures?.megabytesOverIdle,
      (name) => !name.includes('parquet'),
    ),
  },
  {
    figure: 'memory of exports in Parquet, whose row groups are compressed whole, above idle, maximum',
    ...below(400, 'MB'),
    measured: worstOfExports(
      ({ figures }) => figures?.megabytesOverIdle,
      (name) => name.includes('parquet'),
    ),
  },
  {
    figure: 'embedded store, stream by price, CPU time of the server for a million rows',
    ...below(2.2, 's', 2),
    measured: pick('stream-price', cpuOfMillion, 'sqlite'),
  },
  {
    figure: 'embedded store, page of 100 by price, CPU time of the server',
    ...below(0.4, 'ms', 3),
    measured: pick('page-price', cpuOfRequest, 'sqlite'),
  },
  {
    figure: 'stream as Arrow from MongoDB, rows/s against lines of JSON',
    ...atLeast(1.2),
    measured: pick('stream-arrow', ({ figures }) => figures?.ofLines),
  },
  {
    figure: 'the same, CPU time of the server for a row',
    ...atMost(0.75),
    measured: pick('stream-arrow', ({ figures }) => figures?.cpuOfLines),
  },
  {
    figure: 'a million items into polars as Arrow, rows/s against lines of JSON, the worse store',
    ...atLeast(1),
    measured: worstAgainst('frames-polars-arrow', 'frames-polars-ndjson'),
  },
  {
    figure: 'the same, against pymongoarrow straight from MongoDB',
    ...atLeast(1),
    measured: against('frames-polars-arrow', 'frames-polars-pymongoarrow'),
  },
  {
    figure: 'time to the first bytes of a stream, p99',
    ...below(20, 'ms'),
    measured: pick('first-row', ({ latency }) => latency?.p99),
  },
  {
    figure: 'orders: page by an index of two fields, requests/s against Fastify',
    ...atLeast(3),
    measured: ratio('orders-page', 'fastify'),
  },
  {
    figure: 'a change to all idle followers, at worst',
    ...below(1_000, 'ms', 0),
    measured: toAllFollowers,
  },
  {
    figure: 'change streams in mongod for all followers',
    ...below(1, 'stream', 0),
    measured: pick('changes-idle-2000', ({ figures }) => figures?.changeStreams),
  },
  {
    figure: "mongod's CPU time for a change, against the driver's change stream with updateLookup",
    ...atMost(1),
    measured: cpuOfChanges,
  },
  {
    figure: 'pages beside 1,000 followers and 10,000 changes/s, p99 against pages alone',
    ...atMost(3),
    measured: pick('changes-page', againstAlone),
  },
  {
    figure: 'stream that follows, rows/s against one with checkpoints: both make CRCs',
    ...atLeast(0.95),
    measured: pick('follow-walk', ({ figures }) => figures?.ofProved),
  },
  {
    figure: 'the same, embedded store',
    ...atLeast(0.95),
    measured: pick('follow-walk', ({ figures }) => figures?.ofProved, 'sqlite'),
  },
  ...(['ndjson', 'csv'] as const).flatMap((form): Target[] => [
    {
      figure: `import of ${form.toUpperCase()} into the embedded store, rows/s against bare inserts without indexes`,
      ...atLeast(0.28),
      measured: ratio(`load-${form}`, 'bare inserts', 'sqlite'),
    },
    {
      figure: `import of ${form.toUpperCase()} into MongoDB, rows/s against the bare insertMany`,
      ...atLeast(0.9),
      measured: ratio(`load-${form}`, 'bare insertMany'),
    },
  ]),
  {
    figure: 'the first edition of a million rows, the worse store',
    ...thousandRowsPerSecond(150_000),
    measured: worseOf((store) => pick('edition-first', perSecond, store), Math.min),
  },
  {
    figure: 'memory of it above idle, maximum',
    ...below(64, 'MB'),
    measured: worseOf(
      (store) => pick('edition-first', ({ figures }) => figures?.megabytesOverIdle, store),
      Math.max,
    ),
  },
  {
    figure: 'the next edition behind one change, the worse store',
    headline: 'the next edition of a million rows, behind one change',
    ...below(100, 'ms', 0),
    measured: worseOf((store) => pick('edition-1', ({ figures }) => figures?.editionMs, store), Math.max),
  },
  {
    figure: '1,000 readers of an edition at once behind the cache of nginx, CPU time of the server',
    headline:
      '1,000 readers of all rows at once, by an edition behind the cache of nginx, CPU time of the server',
    ...below(0.1, 's', 2),
    measured: pick('edition-readers', ({ figures }) => figures?.editionsCpu, 'sqlite'),
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
