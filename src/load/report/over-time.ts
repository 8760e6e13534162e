import type { Second } from '../figures.ts';
import type { LoadResult } from '../result.ts';
import { linearAxis, logAxis, spanAxis } from './axis.ts';
import type { Line, Plot, Tone } from './plot.ts';
import { shown, type Unit } from './text.ts';

/** A line of a plot over time: what it takes from each second. */
type DrawnCurve = readonly [name: string, tone: Tone, of: (second: Second) => number | null];

/** The plots over the seconds of a run, in the order in which a reader needs them. */
export function plotsOverTime(result: LoadResult): Plot[] {
  const { series } = result;
  const plots = [
    timePlot(series, 'Pages per second', 'rate', [
      ['asked', 'quiet', ({ asked }) => asked],
      ['good', 'first', ({ goodPages }) => goodPages],
      ['refused (429, 503)', 'second', ({ refused429, refused503 }) => refused429 + refused503],
      ['faults, cut, wrong', 'bad', faultsOf],
    ]),
    timePlot(series, 'Latency of pages', 'ms', quantiles('pages'), true),
    timePlot(series, 'Requests without an answer yet', 'number', [
      ['waiting', 'first', ({ waiting }) => waiting],
    ]),
    timePlot(series, 'Time to the first byte of streams', 'ms', quantiles('firstByte'), true),
    timePlot(series, 'Rows per second of all pullers', 'rate', [['rows', 'first', ({ rows }) => rows]]),
    timePlot(series, 'Delay from a write to its line', 'ms', quantiles('delay'), true),
    timePlot(series, 'Processor, in cores', 'cores', [
      ['server', 'first', ({ server }) => server?.cpu ?? null],
      ['this client', 'quiet', ({ client }) => client.cpu],
    ]),
    timePlot(series, 'Delay of the event loop', 'ms', [
      ['server, p99', 'first', ({ server }) => server?.loopDelay ?? null],
      ['this client, longest', 'quiet', ({ client }) => client.loopDelay],
    ]),
    timePlot(series, 'Server: time in store and transcoder, ms a second', 'msPerSecond', [
      ['store', 'first', ({ server }) => server?.store ?? null],
      ['transcoder', 'second', ({ server }) => server?.transcoder ?? null],
    ]),
    timePlot(series, 'Server: streams wait for their clients, ms a second', 'msPerSecond', [
      ['socket', 'first', ({ server }) => server?.socket ?? null],
    ]),
    timePlot(series, 'Memory', 'bytes', [
      ['server', 'first', ({ server }) => server?.memory ?? null],
      ['this client', 'quiet', ({ client }) => client.memory],
    ]),
    timePlot(series, 'Open streams', 'number', [
      ['server', 'first', ({ server }) => server?.streams ?? null],
      ['stalled', 'second', ({ server }) => server?.stalled ?? null],
      ['this client', 'quiet', ({ streams, followers }) => streams + followers],
    ]),
  ];
  return plots.filter(({ lines }) => lines.some(({ points }) => points.some(([, y]) => y !== null && y > 0)));
}

function faultsOf({ faults4xx, faults5xx, cut, wrong }: Second): number {
  return faults4xx + faults5xx + cut + wrong;
}

function quantiles(of: 'pages' | 'firstByte' | 'delay'): DrawnCurve[] {
  return [
    ['p50', 'first', (second) => second[of].p50],
    ['p99', 'second', (second) => second[of].p99],
    ['longest', 'quiet', (second) => second[of].max],
  ];
}

function timePlot(
  series: readonly Second[],
  title: string,
  unit: Unit,
  drawn: readonly DrawnCurve[],
  isLog = false,
): Plot {
  const lines: Line[] = drawn.map(([name, tone, of]) => ({
    name,
    tone,
    points: series.map((second) => [second.second, of(second)] as const),
  }));
  const values = lines.flatMap(({ points }) => points.flatMap(([, y]) => (y === null ? [] : [y])));
  const lowest = values.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = Math.max(0, ...values);
  const label = (value: number) => shown(value, unit);
  return {
    title,
    sentence: `${title} over time, at most ${label(highest)}`,
    x: spanAxis(0, series.at(-1)?.second ?? 1, (second) => `${second} s`),
    y: isLog ? logAxis(Number.isFinite(lowest) ? lowest : 1, highest, label) : linearAxis(highest, label),
    lines,
    hints: series.map((second) => [second.second, hintOf(second, drawn, unit)] as const),
  };
}

function hintOf(second: Second, drawn: readonly DrawnCurve[], unit: Unit): string {
  const figures = drawn.map(([name, , of]) => `${name}: ${shown(of(second), unit)}`);
  return [`second ${second.second}`, ...figures].join('\n');
}
