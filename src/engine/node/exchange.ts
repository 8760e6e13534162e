import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Reply } from '../edge.ts';
import { Exchange, type Exchanges } from '../exchange.ts';
import { Head, REFUSED } from '../framing.ts';
import { bodiless, checkHead } from '../headers.ts';
import { Arrivals } from './arrivals.ts';
import { NodeBody } from './body.ts';
import { ClientGoneError } from '../stall-timer.ts';

/** The last exchange of each connection. */
const latest = new WeakMap<Duplex, NodeExchange>();
/** Connections with a request that was refused. node goes on to parse what is behind it. */
const refused = new WeakSet<Duplex>();

/** One request and its answer on node:http. Those of one connection begin one after another: a burst of them is one turn. */
export class NodeExchange extends Exchange {
  readonly #response: ServerResponse;
  readonly #arrivals: Arrivals | undefined;
  #isOver = false;
  /** The connection is closed behind this answer, so that nothing behind it runs. */
  #isLast = false;
  /** The next request on the connection, which begins when this one is over. */
  #next: NodeExchange | null = null;

  /** Answers a request: with 400, and with none behind it, when readers could disagree about it. */
  static accept(exchanges: Exchanges, request: IncomingMessage, response: ServerResponse): void {
    // node continues to parse what it has received, so another request may follow one that was refused.
    const before = latest.get(request.socket);
    if (request.socket.destroyed || refused.has(request.socket)) return;
    if (before !== undefined && before.#isLast) return;
    if (request.httpVersion !== '1.1') {
      NodeExchange.refuse(request.socket, '505 HTTP Version Not Supported');
      return;
    }
    const method = request.method ?? '';
    const head = new Head();
    const lines = request.rawHeaders;
    for (let i = 0; i < lines.length; i += 2) head.add((lines[i] ?? '').toLowerCase(), lines[i + 1] ?? '');
    const target = request.url ?? '';
    const fault = head.fault(method) ?? (target.startsWith('/') ? null : 'The target must be a path.');
    if (fault !== null) {
      refused.add(request.socket);
      response.writeHead(REFUSED.status, {
        connection: 'close',
        'content-length': fault.length,
        'content-type': REFUSED.contentType,
      });
      response.end(request.method === 'HEAD' ? undefined : fault); // behind the answers before it
      return;
    }
    const exchange = new NodeExchange(exchanges, request, target, response, head);
    latest.set(request.socket, exchange);
    if (!before || before.#isOver) {
      exchange.run();
      return;
    }
    before.#next = exchange;
    exchange.#arrivals?.waits();
  }

  /**
   * Answers what is not a request of HTTP/1.1 with a status and no body, and then closes the connection. HTTP/1.0 is
   * refused because a body of unknown length ends there where the connection ends (RFC 9112, 6.3), so that a proxy takes a
   * stream that was cut for a whole one.
   */
  static refuse(socket: Duplex, status: string): void {
    if (refused.has(socket)) return; // its 400 closes the connection
    if (socket.writable && latest.get(socket)?.takesStatus() !== false)
      socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    socket.destroy();
  }

  private constructor(
    exchanges: Exchanges,
    request: IncomingMessage,
    target: string,
    response: ServerResponse,
    { headers, bodyLength }: Head,
  ) {
    const mark = target.indexOf('?');
    super(exchanges, {
      method: request.method ?? '',
      path: mark === -1 ? target : target.slice(0, mark),
      query: mark === -1 ? '' : target.slice(mark + 1),
      headers,
      address: request.socket.remoteAddress ?? '',
    });
    this.#response = response;
    this.#arrivals = Arrivals.of(request.socket);
    response.on('close', () => {
      if (response.writableFinished) this.finish();
      else this.lose(new ClientGoneError());
    });
    response.on('error', (error) => this.cut(error));
    // An answer queued behind another one gets no event when the connection closes, but its request does.
    request.on('error', () => this.lose(new ClientGoneError()));
    if (bodyLength === 0) return;
    const collector = this.collect(bodyLength);
    request.on('data', (chunk: Buffer) => collector.push(chunk));
    request.on('end', () => collector.finish());
  }

  /**
   * Whether a status would now be read as the answer to this request, or to what comes behind it. Otherwise it would become
   * part of an answer that is on its way, or stand for one to a request that has no fault.
   */
  takesStatus(): boolean {
    if (this.#isOver) return true;
    const response = this.#response;
    return !response.req.complete && !response.headersSent && response.socket !== null;
  }

  override cut(reason: unknown): void {
    this.lose(reason);
    this.#response.destroy();
  }

  protected override finish(): void {
    super.finish();
    this.#isOver = true;
    const next = this.#next;
    if (next === null || this.#isLast) return;
    this.#next = null;
    this.#arrivals?.begins();
    next.run();
  }

  protected override send(reply: Reply, close: boolean): void {
    checkHead(reply);
    const response = this.#response;
    const { body, status, headers } = reply;
    response.statusCode = status;
    for (const name in headers) response.setHeader(name, headers[name] ?? '');
    this.#isLast = close;
    if (close) response.setHeader('connection', 'close');
    if (bodiless(this.method, status)) {
      const length = body.kind === 'head' ? body.length : body.kind === 'bytes' ? body.bytes.length : null;
      if (this.method === 'HEAD' && length !== null) response.setHeader('content-length', length);
      response.end();
      if (body.kind === 'stream') this.runUnread(body, new Error('This answer has no body.'));
      return;
    }
    const writing = new NodeBody({
      response,
      signal: this.signal,
      stallTimer: this.exchanges.stallTimer,
      cut: (reason) => this.cut(reason),
    });
    this.writing = writing;
    if (body.kind === 'stream') {
      if (body.length !== undefined) response.setHeader('content-length', body.length);
      void this.produce(body.run, writing);
      return;
    }
    const bytes = body.kind === 'bytes' ? body.bytes : new Uint8Array(0);
    response.setHeader('content-length', bytes.length);
    void this.produce(() => writing.writeAll(bytes), writing);
  }
}
