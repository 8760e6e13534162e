import { SingleBar } from 'cli-progress';

const CLEAR_LINE = '\r\u001b[K';

/** A bar on a terminal; to be stopped in any case. */
export interface Bar {
  /** `at` counts up to the bar's total; `shown` are the placeholders of its format. */
  update(at: number, shown: Readonly<Record<string, string>>): void;
  /** A line that stays, above the bar. */
  line(text: string): void;
  stop(): void;
}

/** `format` is that of cli-progress; `total` 0 when nobody knows it. */
export function startBar(
  stderr: NodeJS.WritableStream,
  format: string,
  total: number,
  shown: Readonly<Record<string, string>>,
): Bar {
  // gracefulExit would take SIGINT away from whoever runs us.
  const single = new SingleBar({ stream: stderr, format, gracefulExit: false, hideCursor: null });
  single.start(Math.max(total, 1), 0, shown);
  return {
    update: (at, now) => single.update(at, now),
    line: (text) => stderr.write(`${CLEAR_LINE}${text}\n`),
    stop: () => single.stop(),
  };
}
