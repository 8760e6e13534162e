import { startBar } from '../terminal/bar.ts';
import { counted } from '../terminal/text.ts';
import type { ImportResult } from './import.ts';

/** Where lines and the bar go; a terminal or not. */
export interface Console {
  readonly stderr: NodeJS.WritableStream;
  readonly isTTY: boolean;
}

/** How far a run is: of a file in bytes, of generated items in rows; `total` null when nobody knows. */
export interface Extent {
  readonly total: number | null;
  readonly position: (rowsRead: number) => number;
}

/** Shows how a run goes on: a bar on a terminal, else a line now and then. To be stopped in any case. */
export interface Progress {
  update(count: ImportResult): void;
  /** A line that stays, above the bar. */
  line(text: string): void;
  stop(): void;
}

/** Rows between two lines where no bar can be shown. */
const LINE_ROWS = 1_000_000;

export function createProgress({ stderr, isTTY }: Console, extent: Extent): Progress {
  return isTTY ? bar(stderr, extent) : lines(stderr);
}

function bar(stderr: NodeJS.WritableStream, { total, position }: Extent): Progress {
  const format =
    total === null
      ? '{rows} rows read, {written} written | {duration_formatted}'
      : '{bar} {percentage}% | {rows} rows read, {written} written | {eta_formatted} left';
  const shown = startBar(stderr, format, total ?? 0, { rows: '0', written: '0' });
  return {
    update: ({ read, written }) =>
      shown.update(position(read), { rows: counted(read), written: counted(written) }),
    line: (text) => shown.line(text),
    stop: () => shown.stop(),
  };
}

function lines(stderr: NodeJS.WritableStream): Progress {
  let next = LINE_ROWS;
  return {
    update: ({ read, written }) => {
      if (read < next) return;
      next = (Math.floor(read / LINE_ROWS) + 1) * LINE_ROWS;
      stderr.write(`${counted(read)} rows read, ${counted(written)} written\n`);
    },
    line: (text) => stderr.write(`${text}\n`),
    stop: () => undefined,
  };
}
