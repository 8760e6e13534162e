import type { Sink } from '../stream/sink.ts';

/**
 * The edge port: what lies between an HTTP engine and the application. An engine turns bytes of a connection into a
 * Request, asks `serve`, and puts the Reply on the wire. Handlers never see a socket: cork, abort, framing and header
 * rules exist once, in the engine. Engines: uws.ts (uWebSockets.js), node.ts (node:http).
 *
 * Promises of every engine:
 * - No input and no rejected promise kills the process.
 * - A request whose framing is ambiguous (duplicate Content-Length or Host, Transfer-Encoding other than chunked, a
 *   body on GET or HEAD) is answered by closing the connection: a 400 would let a pipelined request run.
 * - `Request.signal` is aborted when the client is gone, the reader stalls longer than `stallTimeoutMs`, or the engine stops for good.
 * - A stream reply whose `run` rejects is cut (no final chunk); one whose `run` resolves is ended cleanly.
 * - HEAD never carries a body; 204 and 304 carry neither body nor Content-Length. Body `none` means Content-Length 0, but
 *   no Content-Length at all on an answer to HEAD, 204 and 304.
 * - Header names and values are checked: CR, LF, NUL never reach the wire (TypeError, answered as 500).
 */
export interface Request {
  readonly method: string;
  /** Path as it came, percent-encoded, without the query. Always begins with `/`. */
  readonly path: string;
  /** Raw query without `?`; empty when there is none. */
  readonly query: string;
  /** Lower-case names; repeated headers joined by `, `. latin1 text. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The peer's address as text (IPv4, or IPv6 without brackets). */
  readonly address: string;
  readonly signal: AbortSignal;
  readonly notes: Notes;
  /** The whole body, at most `bodyLimit` bytes: rejects with AppError `body-too-large` above. Empty when there is none. */
  body(): Promise<Uint8Array>;
}

/** What becomes known of a request on its way, for its line in the log and for the metrics: whoever knows it writes it. */
export interface Notes {
  /** The path of its resource, such as `/items/{id}`; null when no resource has the path. */
  route: string | null;
  /** What its route says it costs: see Cost in admit.ts. */
  cost: string;
  /** Who asks, as the limits name clients: an address or network, or `key:` and a key's name; empty while unknown. */
  client: string;
  /** Rows in the answer so far. */
  rows: number;
  /** The error that became the answer, when it is one of status 5xx. */
  failure: unknown;
}

/** How an answer came to its end. */
export interface Ending {
  /** The status that was sent; 0: none was, because the connection was lost before. */
  readonly status: number;
  /** Bytes of the body that were handed to the connection, as they travel (compressed). */
  readonly bytes: number;
  /** Why it was cut before its end; null: it went out whole. */
  readonly cut: { readonly reason: unknown } | null;
}

/** An answer as a value. Header names are lower-case. The engine adds Content-Length or chunked framing, and Date. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  /** Called once, when the answer is out or will never be. Must not throw. */
  readonly settled?: (ending: Ending) => void;
}

export type Body =
  | { readonly kind: 'none' }
  /** `length` for HEAD: what Content-Length says although no body follows. */
  | { readonly kind: 'head'; readonly length: number }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | FileBody
  | StreamBody;

/** A body of known length, any part of which can be had. It becomes a stream before it comes to an engine: see range.ts. */
export interface FileBody {
  readonly kind: 'file';
  readonly length: number;
  /** Writes the bytes from `start` to `end`, exclusive. Nothing is held until it is called. */
  readonly write: (sink: Sink, start: number, end: number) => Promise<void>;
}

export interface StreamBody {
  readonly kind: 'stream';
  /** How many bytes `run` writes, where that is known: then it is announced, and the answer not chunked. */
  readonly length?: number;
  /**
   * `run` writes everything to the sink and neither ends nor fails it: the engine does, by how the promise settles. It
   * holds resources from the start, so it is called exactly once, also when the client is gone by then (`sink.signal` is aborted).
   */
  readonly run: (sink: Sink) => Promise<void>;
}

/** The application as the engine sees it. It never rejects for a caller's mistake; what it rejects with is a bug (500). */
export type Serve = (request: Request) => Promise<Reply>;

export interface EngineOptions {
  readonly serve: Serve;
  /** Bytes a request body may have. */
  readonly bodyLimit: number;
  /** A stream's reader that takes no byte for so long is cut. Milliseconds. */
  readonly stallTimeoutMs: number;
  /**
   * After the last answer of a stop, for how long nothing must come until idle connections are closed: a client that has
   * its next request on the way still gets it answered. Milliseconds.
   */
  readonly quietMs: number;
  /** Called with what no handler caught: logging, never throwing. */
  readonly onError: (error: unknown, request: Request | null) => void;
}

export interface Engine {
  readonly name: 'uWebSockets.js' | 'node:http';
  /** Resolves with the port listened on (`port` 0 picks one). Rejects when the address is taken. */
  listen(host: string, port: number): Promise<number>;
  /**
   * Stops taking connections, lets running requests finish for at most `graceMs`, then cuts what is left. Idle
   * keep-alive connections are closed. Resolves when everything is closed.
   */
  stop(graceMs: number): Promise<void>;
}
