import uPlot from './uplot.js';
import { element } from './page.js';

const KEPT = 120;
const HEIGHT = 128;

/** The seconds that a plot shows, also before it has values for them. */
const SHOWN_SECONDS = 120;

/** A small live plot of the last two minutes, in the colours of the page. `push` adds the current value. */
export function plot(id) {
  const place = element(id);
  const now = Date.now() / 1000;
  // Two empty points. Without any, the axis would show another year until the first value.
  const [times, values] = [
    [now - SHOWN_SECONDS, now],
    [null, null],
  ];
  let points = 0;
  const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 } };
  const chart = new uPlot(
    {
      width: place.clientWidth || 300,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(1, (most ?? 0) * 1.1)] } },
      axes: [axis, { ...axis, size: 64 }],
      hooks: { draw: [({ scales }) => (place.dataset.from = String(scales.x.min))] },
      series: [{}, { stroke: colour('--accent'), width: 2, points: { show: false } }],
    },
    [times, values],
    place,
  );
  new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => chart.redraw());
  return {
    push(value) {
      times.push(Date.now() / 1000);
      values.push(value);
      if (times.length > KEPT) [times, values].forEach((list) => list.shift());
      chart.setData([times, values]);
      place.dataset.points = String(++points);
    },
  };
}
