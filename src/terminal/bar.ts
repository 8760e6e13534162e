import { SingleBar } from 'cli-progress';

const CLEAR_LINE = '\r\u001b[K';

/** A progress bar on a terminal. The caller must always stop it. */
interface Bar {
  /**
   * Redraws the bar. `at` counts up to the bar's total. `shown` fills the placeholders of the bar's format.
   */
  update(at: number, shown: Readonly<Record<string, string>>): void;
  /** Writes a permanent line above the bar. */
  line(text: string): void;
  stop(): void;
}

/** Starts a bar. `format` is a format of cli-progress. `total` is 0 when it is unknown. */
export function startBar(
  stderr: NodeJS.WritableStream,
  format: string,
  total: number,
  shown: Readonly<Record<string, string>>,
): Bar {
  // gracefulExit would handle SIGINT, which belongs to the caller.
  const single = new SingleBar({ stream: stderr, format, gracefulExit: false, hideCursor: null });
  single.start(Math.max(total, 1), 0, shown);
  return {
    update: (at, now) => single.update(at, now),
    line: (text) => stderr.write(`${CLEAR_LINE}${text}\n`),
    stop: () => single.stop(),
  };
}
