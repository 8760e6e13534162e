import type { Second } from '../figures.ts';
import type { LoadResult } from '../result.ts';
import { percent, shown, signed, type Unit } from './text.ts';

/** One figure of two runs. */
export interface Difference {
  readonly name: string;
  readonly unit: Unit;
  readonly before: number;
  readonly now: number;
  /** (now - before) / before. */
  readonly change: number;
  /**
   * How far the figure moves by itself, as a share of it: from how it differs between the parts of each run. Runs on
   * different days or machines differ by more.
   */
  readonly noise: number;
  readonly is: 'better' | 'same' | 'worse';
}

export interface Comparison {
  readonly differences: readonly Difference[];
  /** What was not equal in the two runs, so that their figures may not be comparable. One sentence each. */
  readonly otherwise: readonly string[];
}

/** A figure that is compared. It has `perSecond` so that its noise can be seen. */
interface Measure {
  readonly name: string;
  readonly unit: Unit;
  readonly isBetter: 'higher' | 'lower';
  of(result: LoadResult): number | null;
  perSecond(second: Second): number | null;
}

const MEASURES: readonly Measure[] = [
  {
    name: 'pages per second',
    unit: 'rate',
    isBetter: 'higher',
    of: ({ phases }) => phases.findLast(({ kind }) => kind !== 'ramp')?.pagesPerSecond ?? null,
    perSecond: ({ goodPages }) => goodPages,
  },
  ...(['p50', 'p99', 'p999'] as const).map((quantile) => latency('pages', 'pages', quantile)),
  ...(['p50', 'p99'] as const).map((quantile) => latency('firstByte', 'first byte', quantile)),
  {
    name: 'rows per second of all pullers',
    unit: 'rate',
    isBetter: 'higher',
    of: ({ phases }) => phases.findLast(({ kind }) => kind !== 'ramp')?.rowsPerSecond ?? null,
    perSecond: ({ rows }) => rows,
  },
  ...(['p50', 'p99'] as const).map((quantile) => latency('delay', 'delay of followers', quantile)),
  {
    name: "server's processor",
    unit: 'cores',
    isBetter: 'lower',
    of: (result) => mean(steady(result).map(({ server }) => server?.cpu ?? null)),
    perSecond: ({ server }) => server?.cpu ?? null,
  },
  {
    name: "server's memory",
    unit: 'bytes',
    isBetter: 'lower',
    of: (result) => mean(steady(result).map(({ server }) => server?.memory ?? null)),
    perSecond: ({ server }) => server?.memory ?? null,
  },
];

function latency(
  kind: 'pages' | 'firstByte' | 'delay',
  name: string,
  quantile: 'p50' | 'p99' | 'p999',
): Measure {
  return {
    name: `${name}, ${quantile === 'p999' ? 'p99.9' : quantile}`,
    unit: 'ms',
    isBetter: 'lower',
    of: ({ latencies }) => latencies[kind][quantile],
    perSecond: (second) => second[kind][quantile],
  };
}

/** Parts of a run whose means show how far a figure moves by itself. */
const PARTS = 10;
/** A difference of the means is real beyond this many standard errors: one of a hundred equal pairs is beyond it. */
const SURE = 2.6;
/** Smaller differences are the same, however steady both runs were. */
const SMALLEST = 0.03;

/** Compares a run with an earlier one. Only figures that both have are compared. */
export function compare(before: LoadResult, now: LoadResult): Comparison {
  const differences = MEASURES.flatMap((measure) => {
    const was = measure.of(before);
    const is = measure.of(now);
    if (was === null || is === null || was === 0) return [];
    const change = (is - was) / was;
    const noise = Math.max(SMALLEST, SURE * Math.hypot(errorOf(before, measure), errorOf(now, measure)));
    const verdict = Math.abs(change) <= noise ? 'same' : isBetter(measure, change) ? 'better' : 'worse';
    const { name, unit } = measure;
    return [{ name, unit, before: was, now: is, change, noise, is: verdict } as const];
  });
  return { differences, otherwise: otherwise(before, now) };
}

function isBetter(measure: Measure, change: number): boolean {
  return change > 0 === (measure.isBetter === 'higher');
}

/**
 * The standard error of the figure, as a share of it, from the median distance of the run's parts to their median: one
 * stall makes one part, and is a difference rather than noise. 0 when there are fewer than two parts.
 */
function errorOf(result: LoadResult, measure: Measure): number {
  const seconds = steady(result).map((second) => measure.perSecond(second));
  const size = Math.max(1, Math.floor(seconds.length / PARTS));
  const parts: number[] = [];
  for (let at = 0; at + size <= seconds.length; at += size) {
    const part = mean(seconds.slice(at, at + size));
    if (part !== null) parts.push(part);
  }
  const middle = median(parts);
  if (parts.length < 2 || middle === 0) return 0;
  const distance = median(parts.map((part) => Math.abs(part - middle)));
  return (TO_DEVIATION * distance) / middle / Math.sqrt(parts.length);
}

/** The standard deviation of normal values by their median distance to the median. */
const TO_DEVIATION = 1.4826;

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The seconds after the ramp. With --find: those of the last step that held. */
function steady({ series, phases }: LoadResult): readonly Second[] {
  const phase = phases.findLast(({ kind, held }) => kind !== 'ramp' && held !== false) ?? phases.at(-1);
  return phase ? series.filter(({ second }) => second >= phase.from && second < phase.to) : series;
}

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** The comparison as lines for a terminal. */
export function comparisonLines({ differences, otherwise }: Comparison): string[] {
  return [
    ...differences.map(
      ({ name, unit, before, now, change, noise, is }) =>
        `${name}: ${shown(before, unit)} before, ${shown(now, unit)} now (${signed(change)}, noise ${percent(noise)}): ${is}`,
    ),
    ...otherwise.map((line) => `not equal in the two runs: ${line}`),
  ];
}

function otherwise(before: LoadResult, now: LoadResult): string[] {
  const facts: readonly (readonly [name: string, of: (result: LoadResult) => string | number | null])[] = [
    ['the URL', ({ target }) => target.url],
    ['the model', ({ options }) => options.model],
    ['the rate asked for', ({ options }) => options.pagesPerSecond],
    ['the connections', ({ options }) => options.connections],
    ['the queries', ({ options }) => options.queries.map(({ query }) => query).join(', ')],
    ['the pullers', ({ options }) => options.pullers],
    ['the format of streams', ({ options }) => `${options.format}, ${options.compression}`],
    ['the followers', ({ options }) => options.followers],
    ['the rows', ({ target }) => target.resources.map(({ name, rows }) => `${name} ${rows}`).join(', ')],
  ];
  return facts.flatMap(([name, of]) => {
    const was = of(before);
    const is = of(now);
    const verb = name.endsWith('s') ? 'differ' : 'differs';
    return was === is ? [] : [`${name} ${verb}: ${was ?? 'none'} before, ${is ?? 'none'} now`];
  });
}
