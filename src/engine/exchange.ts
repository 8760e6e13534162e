import type { Sink } from '../pipeline/sink.ts';
import { BodyCollector } from './request-body.ts';
import {
  newNotes,
  type EngineOptions,
  type Notes,
  type Reply,
  type Request,
  type StreamBody,
} from './edge.ts';
import { dropsBody, endsWithBody } from './framing.ts';
import { ExchangeSignal } from './exchange-signal.ts';
import { PROBLEMS } from '../base/problems.ts';
import { Registry } from '../base/registry.ts';
import { LoopTurns } from '../store/turns/loop-turns.ts';
import { StallTimer, StoppedError } from './stall-timer.ts';

/** State that all exchanges of one engine share. */
export interface Exchanges {
  readonly options: EngineOptions;
  readonly stallTimer: StallTimer;
  /** Exchanges in progress. An exchange adds and removes itself. */
  readonly open: Registry<Exchange>;
  /** Begins a request: see fairStart. */
  readonly start: (begin: () => void) => void;
  /** True once the engine stops. Replies then ask the client to close the connection. */
  stopping: boolean;
}

export function openExchanges(options: EngineOptions): Exchanges {
  return {
    options,
    stallTimer: new StallTimer(options.stallTimeoutMs),
    open: new Registry(),
    start: fairStart(),
    stopping: false,
  };
}

/** How many requests begin in one turn: a connection can send thousands at once, and a page of 1,000 rows takes 2 ms. */
const AT_ONCE = 16;

/** Begins requests so that a burst of them on one connection keeps those of others waiting for a few only. */
function fairStart(): Exchanges['start'] {
  const turns = new LoopTurns();
  let begun = 0;
  return (begin) => {
    if (begun === 0) setImmediate(() => (begun = 0));
    begun++;
    if (begun <= AT_ONCE) begin();
    else void turns.next().then(begin);
  };
}

const LOOK_MS = 20;

/** Resolves when no exchange has been in progress for `quietMs` without a break. Cuts those longer than `graceMs`. */
export async function endExchanges({ open, options }: Exchanges, graceMs: number): Promise<void> {
  const until = performance.now() + graceMs;
  await new Promise<void>((resolve) => {
    let idleSince: number | null = null;
    const timer = setInterval(() => {
      const now = performance.now();
      idleSince = open.size === 0 ? (idleSince ?? now) : null;
      if (now < until && (idleSince === null || now - idleSince < options.quietMs)) return;
      clearInterval(timer);
      resolve();
    }, LOOK_MS);
  });
  for (const exchange of open.all()) exchange.cut(new StoppedError());
}

/** The part of a request that arrives before its body. */
type RequestHead = Omit<Request, 'signal' | 'body' | 'notes'>;

/** One request and its answer: the behaviour that both engines share. */
export abstract class Exchange implements Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Request['headers'];
  readonly address: string;
  readonly notes: Notes = newNotes();
  protected readonly exchanges: Exchanges;
  readonly #place: number;
  /** null when the request has no body. */
  protected incoming: BodyCollector | null = null;
  /** What writes the answer's body. null: nothing does yet, or it was written in one piece of `wholeBytes`. */
  protected writing: { readonly sent: number; lost(reason: unknown): void } | null = null;
  protected wholeBytes = 0;
  #signal: ExchangeSignal | null = null;
  #lostBecause: { readonly reason: unknown } | null = null;
  /** Of the reply being sent; null before and after. Its headers and body are not kept. */
  #answering: { readonly status: number; readonly settled: Reply['settled'] } | null = null;

  constructor(exchanges: Exchanges, head: RequestHead) {
    this.method = head.method;
    this.path = head.path;
    this.query = head.query;
    this.headers = head.headers;
    this.address = head.address;
    this.exchanges = exchanges;
    this.#place = exchanges.open.add(this);
  }

  /** Created on first use, because most answers are complete before any code could abort them. */
  get signal(): AbortSignal {
    if (this.#signal === null) {
      this.#signal = new ExchangeSignal();
      if (this.#lostBecause !== null) this.#signal.abort(this.#lostBecause.reason);
    }
    return this.#signal;
  }

  /** Resolves with the whole body, and with none where it has no meaning. */
  body(): Promise<Uint8Array> {
    if (this.incoming === null || dropsBody(this.method)) return Promise.resolve(new Uint8Array(0));
    return this.incoming.body();
  }

  /** Calls the application, now or when it is this request's turn, and sends its reply. Never throws. */
  run(): void {
    this.exchanges.start(() => {
      if (!this.lost) this.#serve();
    });
  }

  #serve(): void {
    const failed = (error: unknown) => {
      this.report(error);
      this.#answerOnceRead(failure(this.notes));
    };
    try {
      this.exchanges.options.serve(this).then((reply) => this.#answerOnceRead(reply), failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Cuts the connection, so that the client sees an incomplete answer. */
  abstract cut(reason: unknown): void;

  /** Puts the reply on the wire. `close`: the connection is not used again. Throws only before anything is written. */
  protected abstract send(reply: Reply, close: boolean): void;

  protected get lost(): boolean {
    return this.#lostBecause !== null;
  }

  protected finish(): void {
    this.exchanges.open.remove(this.#place, this);
    this.#settle();
  }

  /** Called when the connection is gone before the answer was complete. Only the first call does anything. */
  protected lose(reason: unknown): void {
    if (this.lost) return;
    this.#lostBecause = { reason };
    this.finish(); // also settles a reply in progress, as cut
    this.#signal?.abort(reason);
    this.incoming?.abort(reason);
    this.writing?.lost(reason);
  }

  /** Collects the body, of which so many bytes were announced; null: it was not said how many. */
  protected collect(announced: number | null): BodyCollector {
    const { bodyLimit } = this.exchanges.options;
    return (this.incoming = new BodyCollector(bodyLimit, announced, !dropsBody(this.method)));
  }

  /** Runs a stream into `sink`. Ends the sink when the stream resolves, and cuts it when the stream rejects. */
  protected async produce(run: StreamBody['run'], sink: Sink): Promise<void> {
    try {
      await run(sink);
      await sink.end();
    } catch (error) {
      // The abort reason is not reported: the client left or stalled, or the engine stops.
      if (error !== sink.signal.reason && !this.#answering?.settled) this.report(error);
      sink.fail(error);
    }
  }

  /** Runs a stream that has no reader, so that it releases its resources. */
  protected runUnread({ run }: StreamBody, reason: unknown): void {
    void this.produce(run, closedSink(reason));
  }

  protected report(error: unknown): void {
    this.exchanges.options.onError(error, this);
  }

  /** Waits until the request was read: closing before resets the connection, and the client may lose the answer. */
  #answerOnceRead(reply: Reply): void {
    if (this.incoming === null) this.#answer(reply, false);
    else
      this.incoming.whenDrained((whole) => {
        if (whole && !endsWithBody(this.method)) this.#answer(reply, false);
        // Not while the engine parses what came with the end of the body: it would run, and close nothing before.
        else setImmediate(() => this.#answer(reply, true));
      });
  }

  #answer(reply: Reply, close: boolean): void {
    try {
      this.#answering = { status: reply.status, settled: reply.settled };
      if (this.#lostBecause === null) this.send(reply, close || this.exchanges.stopping);
      else {
        this.#giveBack(reply, this.#lostBecause.reason);
        this.#settle(0);
      }
    } catch (error) {
      this.report(error);
      this.#giveBack(reply, error);
      this.#answerFailure(error);
    }
  }

  /** Releases a reply that is never sent. The reply may be malformed or missing. */
  #giveBack(reply: Partial<Reply> | undefined, reason: unknown): void {
    if (reply?.body?.kind === 'stream') this.runUnread(reply.body, reason);
  }

  #settle(status?: number): void {
    const answering = this.#answering;
    this.#answering = null;
    if (!answering) return;
    answering.settled?.({
      status: status ?? answering.status,
      bytes: this.writing?.sent ?? this.wholeBytes,
      cut: this.#lostBecause,
    });
  }

  #answerFailure(error: unknown): void {
    const failed = failure(this.notes);
    // The `settled` callback of the reply reports this failure instead.
    if (this.#answering) this.#answering = { status: failed.status, settled: this.#answering.settled };
    try {
      this.send(failed, true);
    } catch (again) {
      this.report(again);
      this.cut(error);
    }
  }
}

export function closedSink(reason: unknown): Sink {
  const signal = AbortSignal.abort(reason);
  const refuse = () => signal.throwIfAborted();
  return { chunkBytes: 1024, signal, write: refuse, flush: refuse, end: refuse, fail: () => undefined };
}

const { status, title } = PROBLEMS.internal;

/** The engine's own reply when the application failed to produce one. It does not reveal the reason. */
function failure({ mount }: Notes): Reply {
  const problem = { type: `${mount}/problems/internal`, title, status, code: 'internal' };
  return {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
    body: { kind: 'bytes', bytes: Buffer.from(JSON.stringify(problem)) },
  };
}
