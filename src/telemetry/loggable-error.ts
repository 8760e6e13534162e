import { AppError } from '../errors.ts';

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
 * The parts of an error that the log shows: its name, message, stack and causes, each cut to a maximum
 * length. Other properties are left out: a driver's errors carry descriptions of whole clusters, and any
 * error may carry secrets. An AppError is expected, so it has no stack.
 */
export function loggableError(error: unknown, depth = 0): LoggableError {
  if (!(error instanceof Error)) return { type: typeof error, message: cut(String(error), LONGEST_MESSAGE) };
  const isExpected = error instanceof AppError;
  return {
    type: error.name,
    message: cut(error.message, LONGEST_MESSAGE),
    ...(isExpected && { code: error.code }),
    ...(!isExpected && depth === 0 && { stack: cut(error.stack ?? '', LONGEST_STACK) }),
    ...(error.cause !== undefined &&
      depth < DEEPEST_CAUSE && { cause: loggableError(error.cause, depth + 1) }),
  };
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
