/** A place on an axis that has a line and a label. */
interface Tick {
  /** From 0 (the axis's beginning) to 1 (its end). */
  readonly at: number;
  readonly label: string;
}

/** Maps values to places between 0 and 1. */
export interface Axis {
  readonly ticks: readonly Tick[];
  place(value: number): number;
}

/** An axis from 0 to the first round number that is not below `highest`. */
export function linearAxis(highest: number, label: (value: number) => string): Axis {
  const step = roundStep(highest / 4);
  const end = Math.max(step, Math.ceil(highest / step) * step);
  const count = Math.round(end / step);
  const ticks = Array.from({ length: count + 1 }, (_, n) => ({ at: n / count, label: label(n * step) }));
  return { ticks, place: (value) => clamped(value / end) };
}

/** An axis from `first` to `last`, with ticks at round numbers. */
export function spanAxis(first: number, last: number, label: (value: number) => string): Axis {
  const width = Math.max(last - first, 1);
  const step = Math.max(1, roundStep(width / 5));
  const begin = Math.ceil(first / step) * step;
  const ticks: Tick[] = [];
  for (let value = begin; value <= first + width; value += step)
    ticks.push({ at: (value - first) / width, label: label(value) });
  return { ticks, place: (value) => clamped((value - first) / width) };
}

/** A logarithmic axis over the powers of ten around the values. Values of 0 are at its beginning. */
export function logAxis(lowest: number, highest: number, label: (value: number) => string): Axis {
  const first = Math.floor(Math.log10(Math.max(lowest, 0.01)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(highest, 0.01))));
  const count = last - first;
  const ticks = Array.from({ length: count + 1 }, (_, n) => ({
    at: n / count,
    label: label(10 ** (first + n)),
  }));
  return { ticks, place: (value) => (value <= 0 ? 0 : clamped((Math.log10(value) - first) / count)) };
}

/** The shares that the axis of percentiles names. */
const NAMED = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/**
 * The axis of a plot by percentile: each step to the right leaves a tenth of the latencies, so that the rare ones have
 * as much room as the common ones. `count`: the number of latencies, which ends the axis.
 */
export function percentileAxis(count: number): Axis {
  const end = Math.max(2, Math.log10(Math.max(count, 1)));
  const place = (share: number) => clamped(share >= 1 ? 1 : -Math.log10(1 - share) / end);
  const ticks = NAMED.filter((share) => -Math.log10(1 - share) <= end).map((share) => ({
    at: place(share),
    label: share === 0 ? '0' : `p${Number((share * 100).toPrecision(6))}`,
  }));
  return { ticks, place };
}

function clamped(place: number): number {
  return Math.min(1, Math.max(0, place));
}

/** The first of 1, 2, 5, 10, 20, 50, ... (or their tenths) that is not below. */
function roundStep(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= value) ?? 10 * power;
}
