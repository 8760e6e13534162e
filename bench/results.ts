import { readFileSync } from 'node:fs';
import type { Usage } from './usage.ts';

export type StoreName = 'mongodb' | 'lmdb';

/** Milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** One round of one candidate. */
export interface Round {
  readonly seconds: number;
  /** What the scenario counts: rows, requests, starts. */
  readonly count: number;
  readonly usage: Usage;
  readonly latency?: Latency;
  /** What only this kind of scenario has, by names that say the unit. */
  readonly figures?: Readonly<Record<string, number>>;
  /** The server's memory over time: seconds since the start, bytes. */
  readonly samples?: readonly (readonly [number, number])[];
}

/** All rounds of one candidate in one scenario. */
export interface Series {
  readonly candidate: string;
  readonly rounds: readonly Round[];
}

/** A scenario as it was run: what the report needs of it. */
export interface ScenarioResult {
  readonly name: string;
  readonly kind: string;
  readonly shows: string;
  readonly group: string;
  /** Its place on the axis of its group's plot. */
  readonly x?: number | string;
  readonly store: StoreName;
  /** Items in the store. */
  readonly rows: number;
  readonly series: readonly Series[];
}

/** A whole run, as it is kept in JSON. */
export interface Results {
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly commit: string;
  readonly command: string;
  readonly date: string;
  readonly minutes: number;
  /** Only of a run that was interrupted: the scenario it ended behind. */
  readonly endedAfter?: string;
  readonly scenarios: readonly ScenarioResult[];
}

export function readResults(file: string): Results {
  return JSON.parse(readFileSync(file, 'utf8')) as Results;
}

export function perSecond({ count, seconds }: Round): number {
  return count / seconds;
}

/** The middle one, or the mean of the two in the middle; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] ?? NaN;
  return ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}

/** The value below which so many of 100 are (nearest rank). `sorted` ascending. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? NaN;
}

export function latencyOf(times: readonly number[]): Latency {
  const sorted = Float64Array.from(times).sort();
  const at = (percent: number) => percentile(sorted, percent);
  return { p50: at(50), p90: at(90), p99: at(99), max: at(100) };
}

/** The median over a candidate's rounds of what `pick` picks. */
export function medianOf(series: Series | undefined, pick: (round: Round) => number | undefined): number {
  return median(series?.rounds.map(pick).filter((value) => value !== undefined) ?? []);
}
