import { linearAxis, logAxis, tickText, type Axis } from './axis.ts';

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface LinePlot {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly scale: { readonly x: 'linear' | 'log'; readonly y: 'linear' | 'log' };
  readonly lines: readonly Line[];
}

export interface BarPlot {
  readonly title: string;
  readonly y: string;
  readonly groups: readonly {
    readonly name: string;
    readonly bars: readonly { readonly name: string; readonly value: number }[];
  }[];
}

const WIDTH = 800;
const HEIGHT = 380;
const FRAME = { left: 70, right: 220, top: 44, bottom: 52 };
const INNER = { width: WIDTH - FRAME.left - FRAME.right, height: HEIGHT - FRAME.top - FRAME.bottom };
/** The colours of Okabe and Ito, which colour-blind readers can distinguish. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#999999'];
const GRID = '#dddddd';
/** A line with at most this many points has a mark at each of them. */
const MARKED_POINTS = 20;

/** A line plot over two axes, as a self-contained SVG document. */
export function linePlot({ title, x, y, scale, lines }: LinePlot): string {
  const points = lines.flatMap((line) => line.points);
  const across = axisOf(
    scale.x,
    points.map(([at]) => at),
  );
  const up = axisOf(
    scale.y,
    points.map(([, at]) => at),
  );
  const marks = lines.map(({ points: own }, index) => {
    const places = own.map(([px, py]) => `${number(left(across, px))},${number(top(up, py))}`);
    const colour = colourOf(index);
    const dots = own.length > MARKED_POINTS ? [] : places.map((place) => dot(place, colour));
    return `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${places.join(' ')}"/>${dots.join('')}`;
  });
  const xTicks = across.ticks.map((tick) =>
    text(left(across, tick), HEIGHT - FRAME.bottom + 18, tickText(tick), 'middle'),
  );
  return document(title, x, y, [grid(up), ...xTicks, ...marks, legend(lines.map(({ name }) => name))]);
}

/** A plot of grouped bars over one axis from 0. */
export function barPlot({ title, y, groups }: BarPlot): string {
  const names = [...new Set(groups.flatMap(({ bars }) => bars.map(({ name }) => name)))];
  const up = linearAxis(groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const room = INNER.width / Math.max(1, groups.length);
  const marks = groups.flatMap(({ name, bars }, index) => {
    const start = FRAME.left + room * index;
    const width = (room * 0.8) / Math.max(1, bars.length);
    const rects = bars.map((bar, at) => {
      const from = top(up, bar.value);
      const x = start + room * 0.1 + width * at;
      return `<rect x="${number(x)}" y="${number(from)}" width="${number(width * 0.92)}" height="${number(FRAME.top + INNER.height - from)}" fill="${colourOf(names.indexOf(bar.name))}"/>`;
    });
    return [...rects, text(start + room / 2, HEIGHT - FRAME.bottom + 18, name, 'middle')];
  });
  return document(title, '', y, [grid(up), ...marks, legend(names)]);
}

function axisOf(scale: 'linear' | 'log', values: readonly number[]): Axis {
  return scale === 'log' ? logAxis(values) : linearAxis(values);
}

const left = (axis: Axis, value: number) => FRAME.left + axis.place(value) * INNER.width;
const top = (axis: Axis, value: number) => FRAME.top + (1 - axis.place(value)) * INNER.height;
const colourOf = (index: number) => COLOURS[index % COLOURS.length] ?? '#000000';
const number = (value: number) => String(Math.round(value * 10) / 10);

function dot(place: string, colour: string): string {
  const [x, y] = place.split(',');
  return `<circle cx="${x ?? ''}" cy="${y ?? ''}" r="3" fill="${colour}"/>`;
}

function grid(up: Axis): string {
  return up.ticks
    .map((tick) => {
      const y = number(top(up, tick));
      const line = `<line x1="${FRAME.left}" x2="${WIDTH - FRAME.right}" y1="${y}" y2="${y}" stroke="${GRID}"/>`;
      return line + text(FRAME.left - 8, top(up, tick) + 4, tickText(tick), 'end');
    })
    .join('');
}

function legend(names: readonly string[]): string {
  const x = WIDTH - FRAME.right + 16;
  return names
    .map((name, index) => {
      const y = FRAME.top + 12 + index * 20;
      return `<rect x="${x}" y="${y - 9}" width="12" height="10" fill="${colourOf(index)}"/>${text(x + 18, y, name, 'start')}`;
    })
    .join('');
}

function text(x: number, y: number, content: string, anchor: 'start' | 'middle' | 'end', more = ''): string {
  return `<text x="${number(x)}" y="${number(y)}" text-anchor="${anchor}"${more}>${escape(content)}</text>`;
}

function escape(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function document(title: string, x: string, y: string, parts: readonly string[]): string {
  const middle = FRAME.top + INNER.height / 2;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`, // readable on a dark page too
    text(FRAME.left, 24, title, 'start', ' font-size="15" font-weight="bold"'),
    text(FRAME.left + INNER.width / 2, HEIGHT - 12, x, 'middle'),
    text(18, middle, y, 'middle', ` transform="rotate(-90 18 ${number(middle)})"`),
    ...parts,
    '</svg>',
  ].join('\n')}\n`;
}
