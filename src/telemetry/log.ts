import { isatty } from 'node:tty';
import { pino, type Logger } from 'pino';
import { loggableError } from './loggable-error.ts';

/**
 * The kernel writes up to this many bytes to a pipe in one piece (PIPE_BUF). Lines of several workers never
 * mix.
 */
const WHOLE_WRITE = 4096;
/** The maximum amount of log that waits for a slow reader, in bytes. Further lines are dropped. */
const WAITING_LOG = 16 * 1024 * 1024;

export type { Logger };

export interface LogSettings {
  readonly LOG_LEVEL: string;
  readonly LOG_FORMAT: 'auto' | 'json' | 'pretty';
}

/**
 * Creates the log on standard output. Each entry is a line of JSON, or a line for people (see LOG_FORMAT).
 */
export async function createLog(config: LogSettings): Promise<Logger> {
  const { LOG_LEVEL: level, LOG_FORMAT: format } = config;
  const options = { level, serializers: { err: (error: unknown) => loggableError(error) } };
  const output = pino.destination({ dest: 1, sync: false, maxWrite: WHOLE_WRITE, maxLength: WAITING_LOG });
  if (format === 'json' || (format === 'auto' && !isatty(1))) return pino(options, output);
  const { prettyLine } = await import('./pretty.ts');
  return pino(options, { write: (line: string) => output.write(prettyLine(line)) });
}
