import { STATUS_CODES } from 'node:http';
import type { Sink } from '../stream/sink.ts';
import { addressFromBytes } from './address.ts';
import { CORK_BYTES } from './cork.ts';
import { BodyCollector } from './body.ts';
import type { EngineOptions, Reply, Request } from './edge.ts';
import { Head } from './framing.ts';
import { bodiless, checkHead } from './headers.ts';
import { failure } from './failure.ts';
import { UwsBytes } from './uws-bytes.ts';
import { UwsStream } from './uws-stream.ts';
import type { HttpRequest, HttpResponse } from './uws.ts';
import { ClientGoneError, type Watch } from './watch.ts';

/** Status line, Date, the engine's mark, framing header, blank line: at most so many bytes beside a reply's headers. */
const OWN_HEAD_BYTES = 256;

/** What the exchanges of one engine share. */
export interface Exchanges {
  readonly options: EngineOptions;
  readonly watch: Watch;
  /** Those under way; an exchange adds and removes itself. */
  readonly open: Set<UwsExchange>;
  /** True once the engine stops: answers ask the client to close. */
  stopping: boolean;
}

/**
 * One request and its answer on uWebSockets.js.
 *
 * How long its objects live:
 * | object       | from                | until                                                          | afterwards        |
 * | HttpRequest  | the handler's call  | the handler returns (nothing of it is kept)                    | throws            |
 * | onData chunk | its callback        | the callback returns (it is copied)                            | empty             |
 * | HttpResponse | the handler's call  | `end`, `endWithoutBody`, a `tryEnd` that is done, `onAborted`  | throws            |
 * | `response`   | the constructor     | `finish` sets it to null in each of these cases                | null: not touched |
 */
export class UwsExchange implements Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Request['headers'];
  readonly address: string;
  private readonly exchanges: Exchanges;
  private readonly collector: BodyCollector | null;
  private response: HttpResponse | null;
  private writing: UwsStream | UwsBytes | null = null;
  private controller: AbortController | null = null;
  private abortReason: { readonly reason: unknown } | null = null;

  constructor(exchanges: Exchanges, response: HttpResponse, request: HttpRequest) {
    this.exchanges = exchanges;
    this.response = response;
    response.onAborted(() => this.guard(() => this.lose(new ClientGoneError())));
    this.method = request.getCaseSensitiveMethod();
    this.path = request.getUrl();
    this.query = request.getQuery() ?? '';
    this.address = addressFromBytes(new Uint8Array(response.getRemoteAddress()));
    const head = new Head();
    request.forEach((name, value) => head.add(name, value));
    this.headers = head.headers;
    exchanges.open.add(this);
    const length = head.ambiguous(this.method) ? 0 : head.bodyLength;
    this.collector = length === 0 ? null : this.collect(response, length);
    if (head.ambiguous(this.method)) this.cut(new ClientGoneError());
  }

  /** Made when somebody asks: most answers are out before anybody could want to stop them. */
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.abortReason !== null) this.controller.abort(this.abortReason.reason);
    }
    return this.controller.signal;
  }

  body(): Promise<Uint8Array> {
    return this.method === 'DELETE' || this.collector === null
      ? Promise.resolve(new Uint8Array(0))
      : this.collector.body();
  }

  /** Asks the application and answers. Never throws, never rejects. */
  run(): void {
    if (this.response === null) return;
    const { serve } = this.exchanges.options;
    let answer: Promise<Reply>;
    try {
      answer = serve(this);
    } catch (error) {
      answer = Promise.reject(error);
    }
    answer.then(
      (reply) => this.answerOnceRead(reply),
      (error: unknown) => {
        this.report(error);
        this.answerOnceRead(failure());
      },
    );
  }

  /** Cuts the connection: the client sees that the answer is not whole. */
  cut(reason: unknown): void {
    const { response } = this;
    this.lose(reason);
    if (response !== null) this.guard(() => response.close());
  }

  /** uWebSockets.js mixes up answers when one goes out before its request has been read. */
  private answerOnceRead(reply: Reply): void {
    if (this.collector === null) this.answer(reply, false);
    else this.collector.whenDrained((whole) => this.answer(reply, !whole));
  }

  private answer(reply: Reply, close: boolean): void {
    try {
      this.send(reply, close || this.exchanges.stopping);
    } catch (error) {
      this.report(error);
      // Nothing has been written when checking the head failed; else the connection is past saving.
      if (this.writing === null && this.response !== null && reply.status !== 500) {
        this.answer(failure(), close);
      } else {
        this.cut(error);
      }
    }
  }

  private send(reply: Reply, close: boolean): void {
    const { body } = reply;
    const { response } = this;
    if (response === null) {
      if (body.kind === 'stream') this.stream(body.run, lostSink(this.signal));
      return;
    }
    const headBytes = checkHead(reply) + OWN_HEAD_BYTES;
    const withoutBody = bodiless(this.method, reply.status);
    const writeHead = () => {
      response.writeStatus(`${reply.status} ${STATUS_CODES[reply.status] ?? ''}`);
      for (const name in reply.headers) writeHeader(response, name, reply.headers[name] ?? '');
    };
    const finish = (end: () => void) => {
      response.cork(() => {
        writeHead();
        end();
      });
      this.finish();
    };
    if (withoutBody && body.kind !== 'stream') {
      const length =
        body.kind === 'head' ? body.length : body.kind === 'bytes' ? body.bytes.length : undefined;
      const shown = this.method === 'HEAD' ? length : undefined;
      finish(() => response.endWithoutBody(shown, close));
      return;
    }
    const writeHeadAndClose = () => {
      writeHead();
      if (close) response.writeHeader('connection', 'close');
    };
    switch (body.kind) {
      case 'none':
      case 'head':
        finish(() => response.end(undefined, close));
        return;
      case 'bytes': {
        const { bytes } = body;
        if (headBytes + bytes.length <= CORK_BYTES) {
          finish(() => response.end(bytes, close));
          return;
        }
        const writing = new UwsBytes({
          response,
          bytes,
          writeHead: writeHeadAndClose,
          watch: this.exchanges.watch,
          cut: (reason) => this.cut(reason),
          ended: () => this.finish(),
        });
        this.writing = writing;
        response.onWritable(() => this.onWritable());
        writing.start();
        return;
      }
      case 'stream': {
        const writing = new UwsStream({
          response,
          writeHead: writeHeadAndClose,
          headBytes,
          signal: this.signal,
          watch: this.exchanges.watch,
          cut: (reason) => this.cut(reason),
          ended: () => this.finish(),
        });
        this.writing = writing;
        response.onWritable(() => this.onWritable());
        this.stream(body.run, writing);
        return;
      }
    }
  }

  private stream(run: (sink: Sink) => Promise<void>, sink: Sink): void {
    const produce = async () => {
      try {
        await run(sink);
        await sink.end();
      } catch (error) {
        // What the signal says is known: the client went, or was cut for stalling.
        if (!sink.signal.aborted) this.report(error);
        sink.fail(error);
      }
    };
    void produce();
  }

  private onWritable(): boolean {
    this.guard(() => this.writing?.writable());
    return true;
  }

  private collect(response: HttpResponse, length: number | null): BodyCollector {
    const collector = new BodyCollector(this.exchanges.options.bodyLimit, length, this.method !== 'DELETE');
    response.onData((chunk, isLast) => {
      this.guard(() => {
        if (chunk.byteLength > 0) collector.push(new Uint8Array(chunk.slice(0)));
        if (isLast) collector.finish();
      });
    });
    return collector;
  }

  private lose(reason: unknown): void {
    if (this.response === null) return;
    this.finish();
    this.abortReason = { reason };
    this.controller?.abort(reason);
    this.collector?.abort(reason);
    this.writing?.lost(reason);
  }

  private finish(): void {
    this.response = null;
    this.exchanges.open.delete(this);
  }

  private report(error: unknown): void {
    this.exchanges.options.onError(error, this);
  }

  /** What throws into uWebSockets.js ends the process. */
  private guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.report(error);
    }
  }
}

/** Text goes to uWebSockets.js as UTF-8; a header is latin1. */
function writeHeader(response: HttpResponse, name: string, value: string): void {
  response.writeHeader(name, /^[\x00-\x7f]*$/.test(value) ? value : Buffer.from(value, 'latin1'));
}

/** For a stream whose client has gone before it began: it must be run all the same, to give back what it holds. */
function lostSink(signal: AbortSignal): Sink {
  const refuse = () => {
    throw signal.reason;
  };
  return { chunkBytes: 1024, signal, write: refuse, flush: refuse, end: refuse, fail: () => undefined };
}
