import type { Latencies } from '../figures.ts';
import { logAxis, percentileAxis } from './axis.ts';
import type { Line, Plot, Tone } from './plot.ts';
import { shown } from './text.ts';

/** A histogram to draw. */
interface NamedCurve {
  readonly name: string;
  readonly tone: Tone;
  readonly latencies: Latencies;
}

/** Milliseconds in a tick of a histogram. */
const TICK_MS = 0.1;
/** More points than this are no finer on a screen. */
const MOST_POINTS = 300;

/** The latencies by percentile, on logarithmic axes: a stall that one in a thousand met has its place. */
export function percentilePlot(title: string, histograms: readonly NamedCurve[]): Plot {
  const drawn = histograms.filter(({ latencies }) => latencies.count > 0);
  const x = percentileAxis(Math.max(1, ...drawn.map(({ latencies }) => latencies.count)));
  const lines: Line[] = drawn.map(({ name, tone, latencies }) => ({
    name,
    tone,
    points: stepsOf(latencies),
  }));
  const values = lines.flatMap(({ points }) => points.flatMap(([, y]) => (y === null ? [] : [y])));
  const label = (value: number) => shown(value, 'ms');
  return {
    title,
    x,
    lines,
    sentence: `${title}: ${drawn.map(sentenceOf).join('; ')}`,
    y: logAxis(Math.min(...values, Infinity), Math.max(...values, 1), label),
    hints: [],
  };
}

function sentenceOf({ name, latencies: { p50, p99, max } }: NamedCurve): string {
  return `${name}: half within ${shown(p50, 'ms')}, p99 ${shown(p99, 'ms')}, longest ${shown(max, 'ms')}`;
}

/** For each latency the share of those that are shorter, thinned out. The last point is the longest one. */
function stepsOf({ ticks, counts, count }: Latencies): (readonly [share: number, ms: number])[] {
  const every = Math.max(1, Math.floor(ticks.length / MOST_POINTS));
  let before = 0;
  return ticks.flatMap((tick, n) => {
    const share = before / count;
    before += counts[n] ?? 0;
    const isRare = n > ticks.length - MOST_POINTS; // where few latencies are, each one counts
    return n % every === 0 || isRare ? [[share, tick * TICK_MS] as const] : [];
  });
}
