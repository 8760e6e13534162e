import type { MetricJson } from './counters.ts';

/** The metrics of editions. Values that all processes have are joined to the newest, those that each counts are added. */
export const OF_EDITIONS = {
  age: ['sluice_edition_age_seconds', 'gauge', 'min'],
  sequence: ['sluice_edition_sequence', 'gauge', 'max'],
  rows: ['sluice_edition_rows', 'gauge', 'max'],
  attempt: ['sluice_edition_attempt_seconds', 'gauge', 'max'],
  failures: ['sluice_edition_failures_total', 'counter', 'sum'],
  read: ['sluice_edition_chunks_read_total', 'counter', 'sum'],
  stored: ['sluice_edition_chunks_stored_total', 'counter', 'sum'],
  walked: ['sluice_edition_walk_rows', 'gauge', 'max'],
  expected: ['sluice_edition_walk_expected_rows', 'gauge', 'max'],
} as const satisfies Record<string, readonly [string, MetricJson['type'], MetricJson['aggregator']]>;

/** What is known of the editions of a resource. Absent: it is not known, or there is none. */
export type EditionValues = Readonly<Partial<Record<keyof typeof OF_EDITIONS, number>>>;
