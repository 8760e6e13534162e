/** The answer was cut, or none came. Another attempt from the last proof may succeed. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** How long the server asks the client to wait. Milliseconds. */
  readonly retryAfterMs: number;

  constructor(message: string, options: ErrorOptions & { readonly retryAfterMs?: number } = {}) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/**
 * Another attempt would fail in the same way: the server refuses, or the files on disk belong to another
 * pull.
 */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/**
 * Statuses after which the same request may succeed: the server is unavailable, busy, or failed on this one
 * request.
 */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 507]);

/** The failure for an answer with this status, or for a problem document with it. */
export function failureOf(status: number, message: string, retryAfterMs = 0): Interrupted | Refused {
  return PASSING.has(status) ? new Interrupted(message, { retryAfterMs }) : new Refused(message);
}

const LONGEST_SHOWN = 200;

/** The beginning of a server's text, for a message. A server may send megabytes. */
export function clipped(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}
