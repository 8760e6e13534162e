import { readFileSync } from 'node:fs';
import { LatencyHistogram } from '../src/load/histogram.ts';
import type { Usage } from './usage.ts';

export type StoreName = 'mongodb' | 'sqlite';

/** Latencies in milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** One round of one candidate. */
export interface Round {
  readonly seconds: number;
  /** The count of the scenario: rows, requests or starts. */
  readonly count: number;
  readonly usage: Usage;
  readonly latency?: Latency;
  /** Figures that only this kind of scenario has. Their names state the unit. */
  readonly figures?: Readonly<Record<string, number>>;
  /** The server's memory over time: seconds since the start, bytes. */
  readonly samples?: readonly (readonly [number, number])[];
}

/** All rounds of one candidate in one scenario. */
export interface Series {
  readonly candidate: string;
  readonly rounds: readonly Round[];
}

/** A scenario as it was run, with everything that the report needs. */
export interface ScenarioResult {
  readonly name: string;
  readonly kind: string;
  readonly shows: string;
  readonly group: string;
  /** The position on the axis of its group's plot. */
  readonly x?: number | string;
  readonly store: StoreName;
  /** The number of items in the store. */
  readonly rows: number;
  readonly series: readonly Series[];
}

/** A later run of some scenarios, whose figures took the place of those before. */
export interface MeasuredAgain extends Pick<Results, 'commit' | 'command' | 'date' | 'minutes'> {
  /** The scenarios, each as `NAME on STORE`. */
  readonly names: readonly string[];
}

/** A whole run, as stored in JSON. */
export interface Results {
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly commit: string;
  readonly command: string;
  readonly date: string;
  readonly minutes: number;
  /** Later runs that measured some of the scenarios again, at other commits. */
  readonly again?: readonly MeasuredAgain[];
  /** Only for a run that was interrupted: the last completed scenario. */
  readonly endedAfter?: string;
  readonly scenarios: readonly ScenarioResult[];
}

export function readResults(file: string): Results {
  return JSON.parse(readFileSync(file, 'utf8')) as Results;
}

export function perSecond({ count, seconds }: Round): number {
  return count / seconds;
}

/** The middle value, or the mean of the two middle values. NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] ?? NaN;
  return ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}

/** The bench distinguishes latencies to 0.01 ms. */
const TICKS_PER_MS = 100;

export function benchHistogram(): LatencyHistogram {
  return new LatencyHistogram(TICKS_PER_MS);
}

/** Throws when nothing was measured. */
export function latencyOf(histogram: LatencyHistogram): Latency {
  const { p50, p90, p99, max } = histogram.quantiles();
  if (p50 === null || p90 === null || p99 === null || max === null) throw new Error('nothing was measured');
  return { p50, p90, p99, max };
}

/** The median of a figure over a candidate's rounds. `pick` selects the figure. */
export function medianOf(series: Series | undefined, pick: (round: Round) => number | undefined): number {
  return median(series?.rounds.map(pick).filter((value) => value !== undefined) ?? []);
}
