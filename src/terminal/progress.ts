import { SingleBar } from 'cli-progress';

/** The output for lines and the bar, and whether it is a terminal. */
export interface Console {
  readonly stderr: NodeJS.WritableStream;
  readonly isTTY: boolean;
}

/** Shows how far a run is: by a bar on a terminal, otherwise by a line from time to time. The caller must always stop it. */
export interface Progress {
  /** `at` counts up to the total: rows, bytes. `text` is shown beside it. */
  readonly update: (at: number, text: string) => void;
  /** Writes a permanent line. */
  readonly line: (text: string) => void;
  readonly stop: () => void;
}

/** The time between two lines where no bar can be shown. Milliseconds. */
const LINE_MS = 10_000;
const CLEAR_LINE = '\r\u001b[K';

/** `total`: null when it is unknown. `from`: where the run begins. `now`: a clock in milliseconds. */
export function startProgress(
  { stderr, isTTY }: Console,
  total: number | null,
  { from = 0, now = () => performance.now() } = {},
): Progress {
  const began = now();
  const most = Math.max(total ?? 0, 1);
  const format = total === null ? '{text}' : '{bar} {percentage}% | {text}';
  // gracefulExit would handle SIGINT, which belongs to the caller.
  const options = { stream: stderr, format, gracefulExit: false, hideCursor: null };
  const bar = isTTY ? new SingleBar(options) : null;
  bar?.start(most, Math.min(from, most), { text: '' });
  let next = began + LINE_MS;
  return {
    update(at, more) {
      if (!bar && now() < next) return;
      next = now() + LINE_MS;
      const done = Math.min(at, most);
      const seconds = ((now() - began) * (most - done)) / (done - from) / 1000;
      const text = total === null || done <= from ? more : `${more}, about ${duration(seconds)} left`;
      if (bar) bar.update(done, { text });
      else stderr.write(`${total === null ? '' : `${Math.round((100 * done) / most)} %, `}${text}\n`);
    },
    line: (text) => stderr.write(`${bar ? CLEAR_LINE : ''}${text}\n`),
    stop: () => bar?.stop(),
  };
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (whole < 120) return `${whole} s`;
  return whole < 7200 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}
