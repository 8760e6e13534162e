import { Writable } from 'node:stream';
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
