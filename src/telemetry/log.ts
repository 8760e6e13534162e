import { isatty } from 'node:tty';
import { pino, type DestinationStream, type Logger } from 'pino';
import { AppError } from '../base/errors.ts';
import { clipped, printable } from '../terminal/text.ts';

/** The kernel writes up to so many bytes to a pipe in one piece (PIPE_BUF), so lines of several workers never mix. */
const WHOLE_WRITE = 4096;
/** Lines wait for so many bytes or milliseconds. A write for each costs a busy server a quarter of the CPU of a page. */
const ENOUGH = WHOLE_WRITE / 2;
const LATEST_MS = 100;
/** Lines of this level and above do not wait: the process may be about to end. */
const URGENT = 40;
/** The maximum amount of log that waits for a slow reader, in bytes. Further lines are dropped. */
const WAITING_LOG = 16 * 1024 * 1024;

export type { Logger };

interface LogSettings {
  readonly LOG_LEVEL: string;
  readonly LOG_FORMAT: 'auto' | 'json' | 'pretty';
}

/** The file descriptor of a log: standard output, or standard error for commands that print their result. */
type LogOutput = 1 | 2;

/** Creates the log. Each entry is a line of JSON, or a line for people (see LOG_FORMAT). */
export function createLog(config: LogSettings, dest: LogOutput = 1): Logger {
  const { LOG_LEVEL: level, LOG_FORMAT: format } = config;
  const options = { level, serializers: { err: (error: unknown) => loggableError(error) } };
  const output = pino.destination({ dest, sync: false, maxWrite: WHOLE_WRITE, maxLength: WAITING_LOG });
  if (format === 'json' || (format === 'auto' && !isatty(dest))) return pino(options, gathered(output));
  return pino(options, { write: (line: string) => output.write(prettyLine(line)) });
}

/** Writes lines together. The process does not end by itself before those that wait are written. */
function gathered(output: ReturnType<typeof pino.destination>): DestinationStream {
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting !== '') output.write(waiting);
    waiting = '';
  };
  const stream = {
    [Symbol.for('pino.metadata')]: true, // pino then passes the level of each line
    lastLevel: 0,
    write: (line: string): void => {
      if (waiting.length + line.length > ENOUGH) send();
      waiting += line;
      if (stream.lastLevel >= URGENT || waiting.length > ENOUGH) send();
      else timer ??= setTimeout(send, LATEST_MS);
    },
    flush: (done?: (error?: Error | null) => void): void => {
      send();
      output.flush(done);
    },
  };
  return stream;
}

/** Level 10 is the first. */
const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];
/** Properties that a person at a terminal does not need, or that are shown in another form. */
const LEFT_OUT: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

/** A JSON line for people, all of it printable: no request may write control characters to a terminal. */
export function prettyLine(json: string): string {
  const line = JSON.parse(json) as Record<string, unknown>;
  const time = new Date(Number(line.time)).toISOString().slice(11, 23);
  const rest = Object.entries(line).filter(([name]) => !LEFT_OUT.has(name));
  const details = rest.map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const level = (LEVELS[Number(line.level) / 10 - 1] ?? String(line.level)).padEnd(5);
  return `${printable([time, level, typeof line.msg === 'string' ? line.msg : '', ...details].join(' '))}\n`;
}

const LONGEST_MESSAGE = 500;
const LONGEST_STACK = 4000;
const DEEPEST_CAUSE = 4;

interface LoggableError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: LoggableError;
}

/**
 * An error's name, message, stack and causes, each cut to a length. Others are left out: a driver's errors describe
 * whole clusters, and any error may carry secrets. An AppError is expected, so it has no stack.
 */
export function loggableError(error: unknown, depth = 0): LoggableError {
  if (!(error instanceof Error))
    return { type: typeof error, message: clipped(String(error), LONGEST_MESSAGE) };
  const isExpected = error instanceof AppError;
  return {
    type: error.name,
    message: clipped(error.message, LONGEST_MESSAGE),
    ...(isExpected && { code: error.code }),
    ...(!isExpected && depth === 0 && { stack: clipped(error.stack ?? '', LONGEST_STACK) }),
    ...(error.cause !== undefined &&
      depth < DEEPEST_CAUSE && { cause: loggableError(error.cause, depth + 1) }),
  };
}
