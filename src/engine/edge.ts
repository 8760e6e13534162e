import type { Span } from '../base/span.ts';
import type { Sink } from '../pipeline/sink.ts';

/**
 * The edge port: the boundary between an HTTP engine and the application. An engine turns the bytes of a connection
 * into a Request, calls `serve`, and puts the Reply on the wire. Handlers never see a socket: cork, abort, framing
 * and header rules exist once, in the engine. Engines: uws.ts (uWebSockets.js), node.ts (node:http).
 *
 * Every engine promises:
 * - No input and no rejected promise kills the process.
 * - A request with ambiguous framing (duplicate Content-Length or Host, Transfer-Encoding other than chunked) is answered
 *   with 400 and its reason, and the connection is closed. What is behind it never runs.
 * - A body of a GET or HEAD is read and dropped. Its connection is closed behind the answer, too.
 * - `Request.signal` is aborted when the client is gone, when the reader stalls longer than `stallTimeoutMs`, or when
 *   the engine stops for good.
 * - A stream reply whose `run` rejects is cut (no final chunk). A stream reply whose `run` resolves is ended cleanly.
 * - HEAD never carries a body; 204 and 304 carry neither body nor Content-Length. Body `none` means Content-Length 0,
 *   except on an answer to HEAD and on 204 and 304, which then have no Content-Length at all.
 * - Header names and values are checked: CR, LF, NUL never reach the wire (TypeError, answered as 500).
 */
export interface Request {
  readonly method: string;
  /** The path as received: percent-encoded, without the query. Always begins with `/`. */
  readonly path: string;
  /** The raw query without `?`; empty when there is none. */
  readonly query: string;
  /** Names in lower case; repeated headers joined by `, `. Values are latin1 text. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The peer's address as text: IPv4, or IPv6 in any form without brackets. Empty: unknown. */
  readonly address: string;
  readonly signal: AbortSignal;
  readonly notes: Notes;
  /** Resolves with the whole body; empty: there is none. Rejects with AppError `body-too-large` above `bodyLimit`. */
  body(): Promise<Uint8Array>;
}

/** Facts about a request that are learned while it is answered. Each field is set by the code that learns it. */
export interface Notes {
  /** See requestIdOf in http/request-id.ts. Empty until that is called. */
  id: string;
  /** The path of the resource, such as `/items/{id}`; null when no resource has the path. */
  route: string | null;
  /** The name of the resource that the path belongs to: `items`, `users` or a declared one. null: to none. */
  resource: string | null;
  /** The path under which the client reaches this server, which begins all links: see access/mount.ts. Empty: none. */
  mount: string;
  /** The cost that the route declares: see Cost in access/admission.ts. */
  cost: string;
  /** The client as the limits name it: an address or network, or `key:` and a key's name. Empty: unknown. */
  client: string;
  /** The hash of the rights of the client's key; empty when it has no limits, or when there is no key. */
  rights: string;
  /** The set of the export that the request ordered, or whose file it gets; null when it is about no export. */
  exported: { readonly resource: string; readonly rows: number } | null;
  /** Rows in the answer so far. */
  rows: number;
  /** The error behind the answer when its status is 5xx. */
  failure: unknown;
  /** The code of the problem when the request was refused for want of a key or a right; null otherwise. */
  refusal: string | null;
  /** The span of the request; null when no trace is to show it. */
  span: Span | null;
}

export interface Ending {
  /** The status that was sent. 0 means that none was sent, because the connection was lost first. */
  readonly status: number;
  /** Bytes of the body handed to the connection, in the form sent (compressed). */
  readonly bytes: number;
  /** Why the answer was cut; null when all of it was sent. */
  readonly cut: { readonly reason: unknown } | null;
}

/** Header names are in lower case. The engine adds Content-Length or chunked framing, and Date. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  /** Clients get it with any key and without one, from any cache: it does not vary with that, and says nothing of a client. */
  readonly isShared?: true;
  /** Called once, when the answer is complete or will never be. Must not throw. */
  readonly settled?: (ending: Ending) => void;
}

type Body =
  | { readonly kind: 'none' }
  /** For HEAD. `length` is the value of Content-Length, although no body follows. */
  | { readonly kind: 'head'; readonly length: number }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | FileBody
  | StreamBody;

/** A body of known length, readable from any offset. http/range.ts makes it a stream before an engine gets it. */
export interface FileBody {
  readonly kind: 'file';
  readonly length: number;
  /** A URL that has the same bytes for a while, to which http/range.ts sends clients. Absent: there is none. */
  readonly elsewhere?: () => string;
  /** Writes the bytes from `start` to `end`, exclusive. Holds no resources until it is called. */
  readonly write: (sink: Sink, start: number, end: number) => Promise<void>;
}

export interface StreamBody {
  readonly kind: 'stream';
  /** How many bytes `run` writes, when known. It is sent as Content-Length, and the answer is not chunked. */
  readonly length?: number;
  /**
   * Writes everything to the sink and neither ends nor fails it: the engine ends the sink when the promise resolves,
   * and fails it when the promise rejects. The body holds resources from the start, so `run` is called exactly once,
   * even when the client is already gone (`sink.signal` is then aborted).
   */
  readonly run: (sink: Sink) => Promise<void>;
}

/** The application as the engine sees it. It never rejects for a client's mistake; a rejection is a bug (500). */
export type Serve = (request: Request) => Promise<Reply>;

export interface EngineOptions {
  readonly serve: Serve;
  /** The largest request body, in bytes. */
  readonly bodyLimit: number;
  /** A stream is cut when its reader takes no byte for this long. Milliseconds. */
  readonly stallTimeoutMs: number;
  /**
   * How long the engine waits, after the last answer of a stop and without a new request, before it closes idle
   * connections. A client whose next request is already on its way still gets an answer. Milliseconds.
   */
  readonly quietMs: number;
  /** A connection without a request stays open at least for so long behind an answer. Milliseconds. */
  readonly keepAliveMs: number;
  /** Called with errors that no handler caught. It logs and never throws. */
  readonly onError: (error: unknown, request: Request | null) => void;
}

export interface Engine {
  readonly name: 'uWebSockets.js' | 'node:http';
  /** Resolves with the port it listens on (`port` 0 picks a free one). Rejects when the address is taken. */
  listen(host: string, port: number): Promise<number>;
  /** Accepts no more connections. Cuts requests after `graceMs`. Resolves when everything is closed. */
  stop(graceMs: number): Promise<void>;
}

export function newNotes(): Notes {
  return {
    id: '',
    route: null,
    resource: null,
    mount: '',
    cost: 'page',
    client: '',
    rights: '',
    exported: null,
    rows: 0,
    failure: null,
    refusal: null,
    span: null,
  };
}
