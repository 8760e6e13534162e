import { startBar } from '../terminal/bar.ts';
import { counted, countOf } from '../terminal/text.ts';
import type { ProvedPlace } from './proof.ts';

/** The number of proved rows and bytes. */
type Count = Pick<ProvedPlace, 'rows' | 'bytes'>;

interface ProgressOptions {
  readonly stderr: NodeJS.WritableStream;
  readonly isTTY: boolean;
  /** The approximate number of rows in all. null when it is unknown. */
  readonly total: number | null;
  /** The rows and bytes that an earlier run pulled. */
  readonly before: Count;
  /** A clock in milliseconds. */
  readonly now: () => number;
}

/**
 * Shows the progress of a pull: a bar on a terminal, otherwise a line from time to time. The caller must
 * always stop it.
 */
export interface Progress {
  update(count: Count): void;
  /** Writes a permanent line. */
  line(text: string): void;
  stop(): void;
}

/** The time between two lines where no bar can be shown. Milliseconds. */
const LINE_MS = 10_000;

export function createProgress(options: ProgressOptions): Progress {
  const { stderr, isTTY, total, before, now } = options;
  const describe = describer(options);
  if (isTTY) {
    const format = total === null ? '{text}' : '{bar} {percentage}% | {text}';
    const bar = startBar(stderr, format, total ?? 0, { text: describe(before) });
    const update = (count: Count) => bar.update(Math.min(count.rows, total ?? 0), { text: describe(count) });
    return { ...bar, update };
  }
  let next = now() + LINE_MS;
  return {
    update: (count) => {
      if (now() < next) return;
      next = now() + LINE_MS;
      const share = total ? `${Math.min(100, Math.round((100 * count.rows) / total))} %, ` : '';
      stderr.write(`${share}${describe(count)}\n`);
    },
    line: (text) => stderr.write(`${text}\n`),
    stop: () => undefined,
  };
}

/**
 * Returns a function that describes a count: rows, bytes, the rate of this run, and the remaining time when
 * the total is known.
 */
function describer({ total, before, now }: ProgressOptions): (count: Count) => string {
  const began = now();
  return ({ rows, bytes }) => {
    const rate = (rows - before.rows) / Math.max(0.001, (now() - began) / 1000);
    const left = total === null || rate === 0 ? '' : `, about ${duration((total - rows) / rate)} left`;
    return `${countOf(rows, 'row')}, ${sizeOf(bytes)}, ${counted(Math.round(rate))} rows/s${left}`;
  };
}

/** The report on a pull that is whole. */
export function summary(place: ProvedPlace, cuts: number, ms: number, name: string): string {
  const crc = place.crc32.toString(16).padStart(8, '0');
  const set = `${countOf(place.rows, 'row')}, ${counted(place.bytes)} bytes of NDJSON, CRC-32 ${crc}`;
  const run = `in ${duration(ms / 1000)} with ${countOf(cuts, 'cut')}`;
  return `pulled and proved ${set}, ${run}: ${name}`;
}

/** The report on a copy that was brought up to date by a number of lines. */
export function followSummary(lines: number, name: string): string {
  return `proved ${counted(Math.max(0, lines))} lines of rows and removals: ${name}`;
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (whole < 120) return `${whole} s`;
  return whole < 7200 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}
