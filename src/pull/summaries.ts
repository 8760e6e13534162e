import { duration } from '../terminal/progress.ts';
import { counted, countOf, sizeOf } from '../terminal/text.ts';
import type { ProvedPlace } from './proof.ts';

/** Returns the function that describes the number of rows and bytes so far, with the rate since now. `now`: milliseconds. */
export function describer(before: ProvedPlace, now: () => number): (place: ProvedPlace) => string {
  const began = now();
  return ({ rows, bytes }) => {
    const rate = (rows - before.rows) / Math.max(0.001, (now() - began) / 1000);
    return `${countOf(rows, 'row')}, ${sizeOf(bytes)}, ${counted(Math.round(rate))} rows/s`;
  };
}

export function summary(place: ProvedPlace, cuts: number, ms: number, name: string): string {
  const crc = place.crc32.toString(16).padStart(8, '0');
  const set = `${countOf(place.rows, 'row')}, ${counted(place.bytes)} bytes of NDJSON, CRC-32 ${crc}`;
  const run = `in ${duration(ms / 1000)} with ${countOf(cuts, 'cut')}`;
  return `pulled and proved ${set}, ${run}: ${name}`;
}

/** The report on a copy that was brought up to date by a number of lines. */
export function followSummary(lines: number, name: string): string {
  return `proved ${counted(Math.max(0, lines))} lines of rows and removals: ${name}`;
}
