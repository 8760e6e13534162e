import { medianOf, perSecond, type Results, type Round, type ScenarioResult } from '../results.ts';
import { barPlot, linePlot, type Line } from './svg.ts';

export interface Plot {
  /** The file name without a folder. */
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

type Measure = (round: Round) => number | undefined;

/** The plots for which a run has the scenarios. */
export function plots(results: Results): Plot[] {
  const of = (group: string, store = 'mongodb') =>
    results.scenarios.filter((scenario) => scenario.group === group && scenario.store === store);
  return [
    plotted(
      'latency-by-connections.svg',
      'Page of 100 by price: latency by connections',
      of('connections'),
      (title, scenarios) =>
        linePlot({
          title,
          x: 'connections',
          y: 'milliseconds',
          scale: { x: 'log', y: 'log' },
          lines: (['p50', 'p99'] as const).flatMap((percent) =>
            linesOf(scenarios, ({ latency }) => latency?.[percent]).map((line) => ({
              ...line,
              name: `${line.name}, ${percent}`,
            })),
          ),
        }),
    ),
    plotted(
      'throughput-by-encoding.svg',
      'Stream in id order: rows per second by encoding',
      encodings(of('streams')),
      (title, scenarios) =>
        barPlot({
          title,
          y: 'rows per second',
          groups: scenarios.map(({ name, x, series }) => ({
            name: String(x ?? name.replace('stream-id', 'identity')),
            bars: series
              .filter(({ candidate }) => /^(sluice|fastify)/.test(candidate) && !/raw|cursor/.test(candidate))
              .map((each) => ({ name: each.candidate, value: medianOf(each, perSecond) })),
          })),
        }),
    ),
    plotted(
      'latency-by-depth.svg',
      'Page of 100 by id: median latency by number of rows before it',
      of('depth'),
      (title, scenarios) =>
        linePlot({
          title,
          x: 'rows before the page',
          y: 'milliseconds',
          scale: { x: 'linear', y: 'log' },
          lines: ['cursor', 'offset'].flatMap((style) =>
            linesOf(
              scenarios.filter(({ name }) => name.startsWith(style)),
              ({ latency }) => latency?.p50,
            ).map((line) => ({ ...line, name: `${line.name}, ${style}` })),
          ),
        }),
    ),
    plotted(
      'memory-of-a-slow-reader.svg',
      'Memory of the server with a reader of 2 MB/s',
      of('memory'),
      (title, scenarios) =>
        linePlot({
          title,
          x: 'seconds',
          y: 'MB',
          scale: { x: 'linear', y: 'linear' },
          lines: scenarios.flatMap(memoryLines),
        }),
    ),
    plotted(
      'rows-by-size.svg',
      'Stream in id order: rows per second by size of the set',
      [...of('sizes'), ...of('sizes', 'sqlite')],
      (title, scenarios) =>
        linePlot({
          title,
          x: 'items',
          y: 'rows per second',
          scale: { x: 'log', y: 'linear' },
          lines: ['mongodb', 'sqlite'].flatMap((store) =>
            linesOf(
              scenarios.filter((scenario) => scenario.store === store),
              perSecond,
            ).map((line) => ({ ...line, name: `${line.name}, ${store}` })),
          ),
        }),
    ),
  ].filter((plot) => plot !== null);
}

function plotted(
  file: string,
  title: string,
  scenarios: readonly ScenarioResult[],
  draw: (title: string, scenarios: readonly ScenarioResult[]) => string,
): Plot | null {
  return scenarios.length === 0 ? null : { file, title, svg: draw(title, scenarios) };
}

/** The uncompressed stream and the encodings. */
function encodings(streams: readonly ScenarioResult[]): ScenarioResult[] {
  return streams.filter(({ name }) => ['stream-id', 'stream-gzip', 'stream-br'].includes(name));
}

/** One line for each candidate, over the scenarios' x. */
function linesOf(scenarios: readonly ScenarioResult[], measure: Measure): Line[] {
  const candidates = [
    ...new Set(scenarios.flatMap(({ series }) => series.map(({ candidate }) => candidate))),
  ];
  return candidates.map((name) => ({
    name,
    points: scenarios
      .flatMap(({ x, series }) => {
        const own = series.find(({ candidate }) => candidate === name);
        return own && typeof x === 'number' ? [[x, medianOf(own, measure)] as const] : [];
      })
      .sort(([x], [other]) => x - other),
  }));
}

/** The memory in the last round, since the process was still new in the first one. */
function memoryLines({ series }: ScenarioResult): Line[] {
  return series.map(({ candidate, rounds }) => ({
    name: candidate,
    points: (rounds.at(-1)?.samples ?? []).map(([seconds, bytes]) => [seconds, bytes / 1e6] as const),
  }));
}
