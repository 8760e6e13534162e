import type { Axis } from './axis.ts';
import { escaped } from './text.ts';

/** Points of a line in order of x. A point whose y is null interrupts the line. */
export interface Line {
  readonly name: string;
  /** Which colour of the page: see `style.ts`. */
  readonly tone: Tone;
  readonly points: readonly (readonly [x: number, y: number | null])[];
}

export type Tone = 'first' | 'second' | 'third' | 'fourth' | 'bad' | 'quiet';

export interface Plot {
  readonly title: string;
  /** What the plot shows, in a sentence for readers who do not see it. */
  readonly sentence: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly Line[];
  /** What a pointer shows: the text at each x. */
  readonly hints: readonly (readonly [x: number, text: string])[];
}

/** In units of the drawing, which a phone shows at about their size. */
const WIDTH = 360;
const HEIGHT = 200;
const LEFT = 48;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 22;
const INNER = { width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };

/** The plot as a figure: title, legend, drawing. It needs no script and no file beside the page. */
export function figureOf(plot: Plot): string {
  const shown = plot.lines.filter(({ points }) => points.some(([, y]) => y !== null));
  const drawing = shown.length === 0 ? '<p class="quiet">nothing was measured</p>' : drawingOf(plot, shown);
  const legend = shown.map(({ name, tone }) => `<li class="${tone}">${escaped(name)}</li>`).join('');
  return `<figure><figcaption>${escaped(plot.title)}</figcaption><ul class="legend">${legend}</ul>${drawing}</figure>`;
}

function drawingOf(plot: Plot, lines: readonly Line[]): string {
  const parts = [
    ...plot.y.ticks.map(({ at, label }) => horizontal(at, label)),
    ...plot.x.ticks.map(({ at, label }) => vertical(at, label)),
    ...lines.map((line) => drawn(line, plot)),
    ...hintsOf(plot),
  ];
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(plot.sentence)}">${parts.join('')}</svg>`;
}

function horizontal(at: number, label: string): string {
  const y = round(TOP + (1 - at) * INNER.height);
  return `<path class="grid" d="M${LEFT} ${y}H${WIDTH - RIGHT}"/><text x="${LEFT - 5}" y="${round(y + 3.5)}" text-anchor="end">${escaped(label)}</text>`;
}

function vertical(at: number, label: string): string {
  const x = round(LEFT + at * INNER.width);
  const anchor = at > 0.95 ? 'end' : 'middle';
  return `<text x="${x}" y="${HEIGHT - 6}" text-anchor="${anchor}">${escaped(label)}</text>`;
}

/** A line for points that have a neighbour, and dots for those that stand alone. */
function drawn({ points, tone }: Line, { x, y }: Plot): string {
  const line: string[] = [];
  const dots: string[] = [];
  points.forEach(([at, value], n) => {
    if (value === null) return;
    const place = `${round(LEFT + x.place(at) * INNER.width)} ${round(TOP + (1 - y.place(value)) * INNER.height)}`;
    const [hasBefore, hasNext] = [points[n - 1], points[n + 1]].map((other) => (other?.[1] ?? null) !== null);
    if (hasBefore) line.push(`L${place}`);
    else if (hasNext) line.push(`M${place}`);
    else dots.push(`M${place}h.01`);
  });
  return [
    line.length > 0 ? `<path class="${tone}" d="${line.join('')}"/>` : '',
    dots.length > 0 ? `<path class="${tone} dot" d="${dots.join('')}"/>` : '',
  ].join('');
}

/** Fields over the drawing, as wide as the distance between two hints. */
function hintsOf({ hints, x }: Plot): string[] {
  return hints.map(([at, text], n) => {
    const from = round(LEFT + x.place(at) * INNER.width);
    const next = hints[n + 1];
    const to = next ? round(LEFT + x.place(next[0]) * INNER.width) : WIDTH - RIGHT;
    return `<rect class="hint" x="${from}" y="${TOP}" width="${round(Math.max(1, to - from))}" height="${INNER.height}"><title>${escaped(text)}</title></rect>`;
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
