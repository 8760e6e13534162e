/** A small live plot of the last two minutes, in the colours of the page. */
import uPlot from 'uplot';
import { element } from './dom.ts';

const KEPT = 400;
const HEIGHT = 132;
/** The seconds that a plot shows, also before it has values for them. */
const SHOWN_SECONDS = 120;
const COLOURS = ['--accent', '--second'];

export interface Plot {
  /** Adds the current values, one for each line. Null: none now. */
  push(...values: readonly (number | null)[]): void;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** `lines`: the number of lines. `title`: what is plotted, for readers of the screen. */
export function plot(id: string, title: string, lines = 1): Plot {
  const place = element(id);
  const seconds = () => Date.now() / 1000;
  let points = 0;
  // Two empty points: without any, uPlot does not ask for the range of its axes.
  const times = [seconds() - SHOWN_SECONDS, seconds()];
  const values: (number | null)[][] = Array.from({ length: lines }, () => [null, null]);
  const colour = (name: string) => () =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--quiet'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  };
  const chart = new uPlot(
    {
      width: place.clientWidth || 300,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      // The axis shows the last two minutes whatever values there are, so it is right before the first one.
      scales: {
        x: { range: () => [seconds() - SHOWN_SECONDS, seconds()] },
        y: { range: (_, _least, most) => [0, topOf(most)] },
      },
      axes: [
        { ...axis, size: 30, space: 90, values: (_, at) => at.map((second) => clock.format(second * 1000)) },
        { ...axis, size: 56, space: 30, values: (_, at) => at.map((value) => value.toLocaleString()) },
      ],
      hooks: { draw: [({ scales }) => (place.dataset.from = String(scales.x?.min))] },
      series: [
        {},
        ...values.map((_, n) => ({
          stroke: colour(COLOURS[n] ?? '--accent'),
          width: 2,
          spanGaps: true,
          points: { show: false },
        })),
      ],
    },
    [times, ...values],
    place,
  );
  place.setAttribute('role', 'img');
  place.setAttribute('aria-label', `${title}, the last two minutes`);
  new ResizeObserver(() => {
    if (place.clientWidth > 0) chart.setSize({ width: place.clientWidth, height: HEIGHT });
  }).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => chart.redraw());
  return {
    push(...now) {
      times.push(seconds());
      for (const [n, line] of values.entries()) line.push(now[n] ?? null);
      if (times.length > KEPT) for (const list of [times, ...values]) list.shift();
      chart.setData([times, ...values]);
      place.dataset.points = String(++points);
    },
  };
}

/** The upper end of an axis: a round number above the greatest value. */
function topOf(most: number | null): number {
  const least = Math.max(1, (most ?? 0) * 1.1);
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= least) ?? 10) * power;
}
