import { startBar } from '../terminal/bar.ts';
import { counted } from '../terminal/text.ts';
import type { ImportResult } from './import.ts';

/** The number of rows between two lines where no bar can be shown. */
const LINE_ROWS = 1_000_000;

/** The output for lines and the bar, and whether it is a terminal. */
export interface Console {
  readonly stderr: NodeJS.WritableStream;
  readonly isTTY: boolean;
}

/** The extent of a run: bytes for a file, rows for generated items. `total` is null when it is unknown. */
export interface Extent {
  readonly total: number | null;
  readonly position: (rowsRead: number) => number;
}

/**
 * Shows the progress of a run: a bar on a terminal, otherwise a line from time to time. The caller must
 * always stop it.
 */
export interface Progress {
  update(count: ImportResult): void;
  /** Writes a permanent line above the bar. */
  line(text: string): void;
  stop(): void;
}

/** The extent of a run of so many generated rows. */
export function extentOfRows(total: number): Extent {
  return { total, position: (rowsRead) => rowsRead };
}

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
