import { printable } from '../terminal/text.ts';

/** Level 10 is the first. */
const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];
/**
 * Properties that every line has and that a person at a terminal does not need, or that are shown in another
 * form.
 */
const LEFT_OUT: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

/**
 * Formats a JSON line of the log for people: time, level, message, then the other properties. The whole line
 * is made printable, since a request must not write control characters to a terminal.
 */
export function prettyLine(json: string): string {
  const line = JSON.parse(json) as Record<string, unknown>;
  const time = new Date(Number(line.time)).toISOString().slice(11, 23);
  const rest = Object.entries(line).filter(([name]) => !LEFT_OUT.has(name));
  const details = rest.map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const level = (LEVELS[Number(line.level) / 10 - 1] ?? String(line.level)).padEnd(5);
  return `${printable([time, level, typeof line.msg === 'string' ? line.msg : '', ...details].join(' '))}\n`;
}
