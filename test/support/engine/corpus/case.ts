/** One case: the bytes that a connection sends, and the allowed outcomes. */
export interface Case {
  readonly name: string;
  readonly class: 'compliance' | 'smuggling' | 'malformed' | 'normalisation';
  /** The bytes as latin1, one character for each byte. */
  readonly bytes: string;
  /**
   * The allowed outcomes in the form of `outcomeOf`: the requests that run, the status of the refusal, or
   * `cut`. A request that runs leaves its connection intact, so the request behind it must run too. After
   * `then cut` it must not run.
   */
  readonly outcomes: readonly string[];
  /** The message has no end. Nothing runs until the client has disconnected. */
  readonly waits?: boolean;
}

/** The request behind each case. It runs when the case leaves its connection intact. */
export const BEHIND = 'GET /behind HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** The bytes that a client sends: the case, followed by the request behind it, unless the case has no end. */
export function allOf({ bytes, waits }: Case): string {
  return waits ? bytes : bytes + BEHIND;
}

type Row = Omit<Case, 'class'>;

/** The name of a case by its value, in the notation of JSON. */
export function named(what: string, value: string): string {
  return `${what} ${JSON.stringify(value)}`;
}

/** A case that runs as this request: `GET /path`, or `POST /path <body>`. */
export function runs(name: string, bytes: string, request: string): Row {
  return { name, bytes, outcomes: [request] };
}

/** A case that runs as this request, and is the last one of its connection. */
export function last(name: string, bytes: string, request: string): Row {
  return { name, bytes, outcomes: [`${request} then cut`] };
}

/**
 * A case that is refused, by a status or by closing the connection. Neither the case nor the request behind
 * it runs.
 */
export function refused(name: string, bytes: string, ...statuses: readonly number[]): Row {
  return { name, bytes, outcomes: ['cut', '400', ...statuses.map(String)] };
}

/** A case that the specifications leave open. It runs as this request, or is refused. */
export function either(name: string, bytes: string, request: string, ...statuses: readonly number[]): Row {
  return { name, bytes, outcomes: [request, ...refused(name, bytes, ...statuses).outcomes] };
}

/** A case that has no end. */
export function waits(name: string, bytes: string): Row {
  return { name, bytes, outcomes: ['cut', '400'], waits: true };
}

export function classed(what: Case['class'], rows: readonly Row[]): readonly Case[] {
  return rows.map((row) => ({ ...row, class: what }));
}

/** A request with these lines between its Host and its body. */
export function message(start: string, lines: readonly string[] = [], body = ''): string {
  return [start, 'Host: a', ...lines, '', body].join('\r\n');
}

export function post(lines: readonly string[], body = ''): string {
  return message('POST /x HTTP/1.1', lines, body);
}
