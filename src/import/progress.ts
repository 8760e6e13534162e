import { startBar } from '../terminal/bar.ts';
import { counted } from '../terminal/text.ts';

/** The number of rows between two lines where no bar can be shown. */
const LINE_ROWS = 1_000_000;

/** The output for lines and the bar, and whether it is a terminal. */
export interface Console {
  readonly stderr: NodeJS.WritableStream;
  readonly isTTY: boolean;
}

/** What a bar shows beside the rows so far: `{rows}`, and the texts that `update` gets. */
export interface Progress {
  /** `at` counts up to the total of the bar: bytes, or rows. */
  update(at: number, rows: number, shown?: Readonly<Record<string, string>>): void;
  /** Writes a permanent line above the bar. */
  line(text: string): void;
  stop(): void;
}

/**
 * Shows how far a run is: by a bar on a terminal, otherwise by a line for each million rows. The caller must always stop
 * it. `text`: what both show, with the places `{rows}` and those that `update` fills. `total`: null when it is unknown.
 */
export function startProgress({ stderr, isTTY }: Console, total: number | null, text: string): Progress {
  const format =
    total === null
      ? `${text} | {duration_formatted}`
      : `{bar} {percentage}% | ${text} | {eta_formatted} left`;
  const bar = isTTY ? startBar(stderr, format, total ?? 0, { rows: '0', written: '0' }) : null;
  let next = LINE_ROWS;
  return {
    update(at, rows, more = {}) {
      const shown: Readonly<Record<string, string>> = { rows: counted(rows), ...more };
      bar?.update(at, shown);
      if (bar || rows < next) return;
      next = (Math.floor(rows / LINE_ROWS) + 1) * LINE_ROWS;
      stderr.write(`${text.replace(/\{(\w+)\}/g, (_, name: string) => shown[name] ?? '')}\n`);
    },
    line(text) {
      if (bar) bar.line(text);
      else stderr.write(`${text}\n`);
    },
    stop: () => bar?.stop(),
  };
}
