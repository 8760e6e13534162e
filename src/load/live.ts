import { startProgress } from '../terminal/progress.ts';
import { counted } from '../terminal/text.ts';
import type { Counts, Second } from './figures.ts';

/** Shows a run while it lasts. The caller must always stop it. */
export interface Live {
  second(second: Second): void;
  /** Writes a permanent line. */
  line(text: string): void;
  stop(): void;
}

/** A line that is redrawn on a terminal, otherwise a line from time to time. */
export function startLive(stderr: NodeJS.WritableStream, isTTY: boolean): Live {
  const { update, line, stop } = startProgress({ stderr, isTTY }, null);
  return { second: (second) => update(0, lineOf(second)), line, stop };
}

function lineOf(second: Second): string {
  const { asked, goodPages, pages, rows, streams, followers, lines } = second;
  const parts = [`${second.second + 1} s`];
  if (second.asked !== null || goodPages > 0 || second.waiting > 0)
    parts.push(
      `${counted(goodPages)}${asked === null ? '' : ` of ${counted(Math.round(asked))}`} pages/s`,
      `p50 ${ms(pages.p50)} p99 ${ms(pages.p99)} ms`,
      ...(second.waiting > 0 ? [`${counted(second.waiting)} waiting`] : []),
    );
  if (streams > 0) parts.push(`${counted(streams)} streams ${counted(rows)} rows/s`);
  if (followers > 0) parts.push(`${counted(followers)} followers ${counted(lines)} lines/s`);
  return [...parts, ...badOf(second)].join(' | ');
}

/** The bad answers, in words. */
export function badOf(counts: Counts): string[] {
  const all: readonly [keyof Counts, string][] = [
    ['refused429', '429'],
    ['refused503', '503'],
    ['faults4xx', 'other 4xx'],
    ['faults5xx', 'other 5xx'],
    ['cut', 'cut'],
    ['unanswered', 'unanswered'],
    ['wrong', 'WRONG'],
  ];
  return all.filter(([name]) => counts[name] > 0).map(([name, text]) => `${counted(counts[name])} ${text}`);
}

export function ms(value: number | null): string {
  if (value === null) return '-';
  return value < 100 ? value.toFixed(1) : counted(Math.round(value));
}
