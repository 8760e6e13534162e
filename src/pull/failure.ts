/** The answer broke off, or none came: asking again from the last proof may help. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** How long the server asks to be left alone. Milliseconds. */
  readonly retryAfterMs: number;

  constructor(message: string, options: ErrorOptions & { readonly retryAfterMs?: number } = {}) {
    super(message, options);
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/** Asking again gives the same: the server refuses, or what is on the disk is another pull's. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Statuses after which the same request may be answered: the server is away, busy, or broke on this one. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 507]);

/** The failure that an answer of this status, or a problem document with it, stands for. */
export function failureOf(status: number, message: string, retryAfterMs = 0): Interrupted | Refused {
  return PASSING.has(status) ? new Interrupted(message, { retryAfterMs }) : new Refused(message);
}

const LONGEST_SHOWN = 200;

/** The beginning of a text that a server sent, for a message: a server may send megabytes. */
export function clipped(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}
