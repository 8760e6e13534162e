import { isatty } from 'node:tty';
import { pino, type Logger } from 'pino';
import { loggableError } from './loggable-error.ts';

/** A pipe takes so many bytes in one piece (PIPE_BUF): lines of several workers never mix. */
const WHOLE_WRITE = 4096;
/** Log that waits for a slow reader; what comes when there is more is dropped. Bytes. */
const WAITING_LOG = 16 * 1024 * 1024;

export type { Logger };

export interface LogSettings {
  readonly LOG_LEVEL: string;
  readonly LOG_FORMAT: 'auto' | 'json' | 'pretty';
}

/** The log on standard output: a line of JSON each time, or one for people (see LOG_FORMAT). */
export async function createLog(config: LogSettings): Promise<Logger> {
  const { LOG_LEVEL: level, LOG_FORMAT: format } = config;
  const options = { level, serializers: { err: (error: unknown) => loggableError(error) } };
  const output = pino.destination({ dest: 1, sync: false, maxWrite: WHOLE_WRITE, maxLength: WAITING_LOG });
  if (format === 'json' || (format === 'auto' && !isatty(1))) return pino(options, output);
  const { prettyLine } = await import('./pretty.ts');
  return pino(options, { write: (line: string) => output.write(prettyLine(line)) });
}
