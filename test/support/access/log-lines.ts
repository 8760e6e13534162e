import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino, type Logger } from 'pino';

/** A log that adds its lines to an array. */
export function logTo(lines: string[], level = 'info'): Logger {
  const write = (line: Buffer, _: unknown, done: () => void) => {
    lines.push(String(line));
    done();
  };
  return pino({ level }, new Writable({ write }));
}

/** The lines of the log about refused requests and about sets that clients read. */
export function auditOf(lines: readonly string[]): readonly Readonly<Record<string, unknown>>[] {
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'audit');
}

/** Resolves once the log has such a line. A request is logged when its answer has ended, which its client may see before. */
export async function untilLogged(lines: readonly string[], line: RegExp): Promise<void> {
  const end = performance.now() + 20_000;
  while (!lines.some((one) => line.test(one))) {
    assert.ok(performance.now() < end, `no line is like ${line}`);
    await nextTurn();
  }
}
