/** An axis: the position of a value, from 0 to 1, and the labelled values. */
export interface Axis {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

const WANTED_TICKS = 5;

/** An axis from 0 to a round number at or above the largest value. */
export function linearAxis(values: readonly number[]): Axis {
  const largest = Math.max(...values, Number.MIN_VALUE);
  const step = roundStep(largest / WANTED_TICKS);
  const top = Math.ceil(largest / step) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return { place: (value) => value / top, ticks };
}

/** An axis between the powers of ten around the positive values. A zero is placed at the beginning. */
export function logAxis(values: readonly number[]): Axis {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return linearAxis(values);
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive))));
  const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return { place: (value) => (value <= 0 ? 0 : (Math.log10(value) - low) / (high - low)), ticks };
}

/** The smallest value of at least `least` that is 1, 2 or 5 times a power of ten. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power;
}

/** The label of a tick: 1.5k for 1,500. */
export function tickText(value: number): string {
  const units: readonly (readonly [number, string])[] = [
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  const [size, letter] = units.find(([each]) => value >= each) ?? [1, ''];
  return `${Number((value / size).toPrecision(3))}${letter}`;
}
