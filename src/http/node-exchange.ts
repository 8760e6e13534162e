import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Sink } from '../stream/sink.ts';
import { addressFromText } from './address.ts';
import { BodyCollector } from './body.ts';
import type { EngineOptions, Reply, Request } from './edge.ts';
import { failure } from './failure.ts';
import { Head } from './framing.ts';
import { bodiless, checkHead } from './headers.ts';
import { NodeBody } from './node-body.ts';
import { ClientGoneError, type Watch } from './watch.ts';

/** What the exchanges of one engine share. */
export interface NodeExchanges {
  readonly options: EngineOptions;
  readonly watch: Watch;
  /** Those under way; an exchange adds and removes itself. */
  readonly open: Set<NodeExchange>;
  /** True once the engine stops: answers ask the client to close. */
  stopping: boolean;
}

/** One request and its answer on node:http. */
export class NodeExchange implements Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Request['headers'];
  readonly address: string;
  private readonly exchanges: NodeExchanges;
  private readonly response: ServerResponse;
  private readonly collector: BodyCollector | null;
  private readonly controller = new AbortController();
  private writing: NodeBody | null = null;

  constructor(exchanges: NodeExchanges, request: IncomingMessage, response: ServerResponse) {
    this.exchanges = exchanges;
    this.response = response;
    this.method = request.method ?? '';
    const target = request.url ?? '';
    const mark = target.indexOf('?');
    this.path = mark === -1 ? target : target.slice(0, mark);
    this.query = mark === -1 ? '' : target.slice(mark + 1);
    this.address = addressFromText(request.socket.remoteAddress);
    const head = new Head();
    const lines = request.rawHeaders;
    for (let i = 0; i < lines.length; i += 2) head.add((lines[i] ?? '').toLowerCase(), lines[i + 1] ?? '');
    this.headers = head.headers;
    exchanges.open.add(this);
    response.on('close', () => this.closed());
    response.on('error', (error) => this.cut(error));
    const length = head.ambiguous(this.method) ? 0 : head.bodyLength;
    this.collector = length === 0 ? null : this.collect(request, length);
    if (head.ambiguous(this.method) || !this.path.startsWith('/')) this.cut(new ClientGoneError());
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  body(): Promise<Uint8Array> {
    return this.method === 'DELETE' || this.collector === null
      ? Promise.resolve(new Uint8Array(0))
      : this.collector.body();
  }

  /** Asks the application and answers. Never throws, never rejects. */
  run(): void {
    if (this.signal.aborted) return;
    const answer = async () => this.exchanges.options.serve(this);
    answer().then(
      (reply) => this.answerOnceRead(reply),
      (error: unknown) => {
        this.report(error);
        this.answerOnceRead(failure());
      },
    );
  }

  /** Cuts the connection: the client sees that the answer is not whole. */
  cut(reason: unknown): void {
    this.lose(reason);
    this.response.destroy();
  }

  private answerOnceRead(reply: Reply): void {
    if (this.collector === null) this.answer(reply, false);
    else this.collector.whenDrained((whole) => this.answer(reply, !whole));
  }

  private answer(reply: Reply, close: boolean): void {
    try {
      this.send(reply, close || this.exchanges.stopping);
    } catch (error) {
      this.report(error);
      if (!this.response.headersSent && !this.signal.aborted && reply.status !== 500) {
        this.answer(failure(), close);
      } else {
        this.cut(error);
      }
    }
  }

  private send(reply: Reply, close: boolean): void {
    const { response, signal } = this;
    const { body, status } = reply;
    if (!signal.aborted) {
      checkHead(reply);
      response.statusCode = status;
      for (const name in reply.headers) response.setHeader(name, reply.headers[name] ?? '');
      if (close) response.setHeader('connection', 'close');
    }
    if (body.kind === 'stream' && !bodiless(this.method, status)) {
      this.produce(body.run, this.sink());
      return;
    }
    if (signal.aborted) {
      if (body.kind === 'stream') this.produce(body.run, this.sink());
      return;
    }
    const length = body.kind === 'head' ? body.length : body.kind === 'bytes' ? body.bytes.length : null;
    if (bodiless(this.method, status)) {
      if (this.method === 'HEAD' && length !== null) response.setHeader('content-length', length);
      response.end();
      return;
    }
    const bytes = body.kind === 'bytes' ? body.bytes : new Uint8Array(0);
    response.setHeader('content-length', bytes.length);
    this.produce(async (sink) => {
      for (let at = 0; at < bytes.length; at += sink.chunkBytes) {
        await sink.writeOwned(bytes.subarray(at, at + sink.chunkBytes));
      }
    }, this.sink());
  }

  private sink(): NodeBody {
    const { response, signal } = this;
    this.writing = new NodeBody({
      response,
      signal,
      watch: this.exchanges.watch,
      cut: (reason) => this.cut(reason),
    });
    return this.writing;
  }

  private produce<S extends Sink>(run: (sink: S) => Promise<void>, sink: S): void {
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

  private collect(request: IncomingMessage, length: number | null): BodyCollector {
    const collector = new BodyCollector(this.exchanges.options.bodyLimit, length, this.method !== 'DELETE');
    request.on('data', (chunk: Buffer) => collector.push(chunk));
    request.on('end', () => collector.finish());
    request.on('error', () => this.lose(new ClientGoneError()));
    return collector;
  }

  private closed(): void {
    if (this.response.writableFinished) this.exchanges.open.delete(this);
    else this.lose(new ClientGoneError());
  }

  private lose(reason: unknown): void {
    this.exchanges.open.delete(this);
    if (this.signal.aborted) return;
    this.controller.abort(reason);
    this.collector?.abort(reason);
    this.writing?.lost(reason);
  }

  private report(error: unknown): void {
    this.exchanges.options.onError(error, this);
  }
}
