/** One thing that a connection may bring: bytes, and what a server may make of them. */
export interface Case {
  readonly name: string;
  readonly class: 'compliance' | 'smuggling' | 'malformed' | 'normalisation';
  /** latin1, one character a byte. */
  readonly bytes: string;
  /**
   * What may come of it, each in the words of `outcomeOf`: the requests that run, or the status of the refusal, or `cut`. A
   * request that runs goes with its connection, so the one behind it has to run, too; `then cut`: that one must not.
   */
  readonly outcomes: readonly string[];
  /** The message has no end: nothing runs until the client has gone. */
  readonly waits?: boolean;
}

/** The request behind each case: it runs when the case has left its connection in order. */
export const BEHIND = 'GET /behind HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** What a client sends: the case, and unless that has no end, the request behind it. */
export function allOf({ bytes, waits }: Case): string {
  return waits ? bytes : bytes + BEHIND;
}

type Row = Omit<Case, 'class'>;

/** Runs as this: `GET /path`, or `POST /path <body>`. */
export function runs(name: string, bytes: string, request: string): Row {
  return { name, bytes, outcomes: [request] };
}

/** Is refused, by a status or by closing the connection; nothing runs, nor what is behind it. */
export function refused(name: string, bytes: string, ...statuses: readonly number[]): Row {
  return { name, bytes, outcomes: ['cut', '400', ...statuses.map(String)] };
}

/** The specifications leave it open: runs as this, or is refused. */
export function either(name: string, bytes: string, request: string, ...statuses: readonly number[]): Row {
  return { name, bytes, outcomes: [request, ...refused(name, bytes, ...statuses).outcomes] };
}

/** Has no end. */
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
