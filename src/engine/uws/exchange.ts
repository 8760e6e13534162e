import { STATUS_CODES } from 'node:http';
import { addressFromBytes } from '../address.ts';
import { CORK_BYTES } from '../cork.ts';
import type { Reply } from '../edge.ts';
import { Exchange, type Exchanges } from '../exchange.ts';
import { Head, REFUSED } from '../framing.ts';
import { bodiless, checkHead } from '../headers.ts';
import { UwsBody } from './body.ts';
import type { HttpRequest, HttpResponse } from './library.ts';
import { ClientGoneError } from '../stall-timer.ts';

/** Bytes of a head beside the reply's headers: status line, Date, the engine's mark, framing, blank line. */
const OWN_HEAD_BYTES = 256;

/**
 * One request and its answer on uWebSockets.js.
 *
 * The lifetime of its objects:
 * | object       | from               | until                                                         | afterwards |
 * |--------------|--------------------|---------------------------------------------------------------|------------|
 * | HttpRequest  | the handler's call | the handler returns; nothing of it is kept                    | throws     |
 * | onData chunk | its callback       | the callback returns; it is copied                            | is empty   |
 * | HttpResponse | the handler's call | `end`, `endWithoutBody`, a `tryEnd` that is done, `onAborted` | throws     |
 * | `response`   | `accept`           | `finish` and `lose` set it to null in each of these cases     | is null    |
 */
export class UwsExchange extends Exchange {
  #response: HttpResponse | null;
  /** Whether a status line was written: see writeHead. */
  #isContinued = false;

  /** Reads the request while it is valid, and answers it: with 400 when readers could disagree about it. */
  static accept(exchanges: Exchanges, response: HttpResponse, request: HttpRequest): void {
    const method = request.getCaseSensitiveMethod();
    const head = new Head();
    request.forEach((name, value) => head.add(name, value));
    const fault = head.fault(method);
    if (fault === null) new UwsExchange(exchanges, response, request, method, head).run();
    else refuse(response, fault, (error) => exchanges.options.onError(error, null));
  }

  private constructor(
    exchanges: Exchanges,
    response: HttpResponse,
    request: HttpRequest,
    method: string,
    { headers, bodyLength }: Head,
  ) {
    super(exchanges, {
      method,
      path: request.getUrl(),
      query: request.getQuery() || '', // undefined when there is none, despite its type
      headers,
      address: addressFromBytes(new Uint8Array(response.getRemoteAddress())),
    });
    this.#response = response;
    response.onAborted(() => this.#guard(() => this.lose(new ClientGoneError())));
    if (bodyLength === 0) return;
    if (isOtherContinue(headers.expect)) {
      response.writeStatus('100 Continue\r\n');
      this.#isContinued = true;
    }
    const collector = this.collect(bodyLength);
    response.onData((chunk, isLast) => {
      this.#guard(() => {
        if (chunk.byteLength > 0) collector.push(new Uint8Array(chunk.slice(0)));
        if (isLast) collector.finish();
      });
    });
  }

  override cut(reason: unknown): void {
    const response = this.#response;
    this.lose(reason);
    if (response !== null) this.#guard(() => response.close());
  }

  protected override send(reply: Reply, close: boolean): void {
    const headBytes = checkHead(reply) + OWN_HEAD_BYTES;
    const response = this.#response;
    const { body } = reply;
    if (response === null) return;
    if (bodiless(this.method, reply.status)) {
      const length = body.kind === 'head' ? body.length : body.kind === 'bytes' ? body.bytes.length : null;
      response.cork(() => {
        writeHead(response, reply, close, this.#isContinued);
        if (this.method === 'HEAD' && length !== null) response.endWithoutBody(length);
        else response.endWithoutBody(); // with `undefined` it would still send a length
      });
      this.finish();
      if (body.kind === 'stream') this.runUnread(body, new Error('This answer has no body.'));
    } else if (body.kind === 'stream') {
      // Only the end of a chunked body closes the connection.
      const writing = this.#body(response, { reply, close, headBytes }, close ? null : (body.length ?? null));
      this.#whenWritable(response, writing);
      void this.produce(body.run, writing);
    } else if (body.kind === 'bytes' && headBytes + body.bytes.length > CORK_BYTES) {
      const writing = this.#body(response, { reply, close, headBytes }, close ? null : body.bytes.length);
      if (close) {
        this.#whenWritable(response, writing);
        void this.produce(async (sink) => sink.write(body.bytes), writing);
      } else if (!writing.writeWhole(body.bytes)) this.#whenWritable(response, writing);
    } else {
      response.cork(() => {
        writeHead(response, reply, false, this.#isContinued);
        response.end(body.kind === 'bytes' ? body.bytes : undefined, close);
      });
      if (body.kind === 'bytes') this.wholeBytes = body.bytes.length;
      this.finish();
    }
  }

  /** The body was sent to its end. */
  ended(): void {
    this.finish();
  }

  protected override finish(): void {
    this.#response = null;
    super.finish();
  }

  /** The body of an answer. The function that writes its head is kept until then, and with it the reply. */
  #body(
    response: HttpResponse,
    {
      reply,
      close,
      headBytes,
    }: { readonly reply: Reply; readonly close: boolean; readonly headBytes: number },
    length: number | null,
  ): UwsBody {
    const isContinued = this.#isContinued;
    const head = { bytes: headBytes, write: () => writeHead(response, reply, close, isContinued) };
    const { stallTimer } = this.exchanges;
    return (this.writing = new UwsBody({ response, owner: this, stallTimer, head, length, closes: close }));
  }

  #whenWritable(response: HttpResponse, writing: UwsBody): void {
    response.onWritable(() => {
      this.#guard(() => writing.writable());
      return true;
    });
  }

  /** An exception thrown into uWebSockets.js ends the process. */
  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.report(error);
    }
  }
}

/**
 * Answers 400 and closes the connection. Not before the library has parsed what came in the same packet: it takes that for
 * requests, and closes the connection at the first one, since this one has no answer yet. So none of them runs.
 */
function refuse(response: HttpResponse, reason: string, failed: (error: unknown) => void): void {
  let isGone = false;
  response.onAborted(() => (isGone = true));
  setImmediate(() => {
    if (isGone) return;
    try {
      response.cork(() => {
        response.writeStatus(`${REFUSED.status} ${STATUS_CODES[REFUSED.status]}`);
        response.writeHeader('content-type', REFUSED.contentType);
        response.end(reason, true);
      });
    } catch (error) {
      failed(error);
    }
  });
}

/** An expectation has any case (RFC 9110, 10.1.1), as that of Java. uWebSockets.js itself answers the one in lower case. */
function isOtherContinue(expect: string | undefined): boolean {
  return expect !== undefined && expect !== '100-continue' && expect.toLowerCase() === '100-continue';
}

/**
 * Writes status and headers. `close` adds `connection: close`; `end` and `endWithoutBody` can add it themselves. The
 * library writes one status line. After a 100 the other one goes the way of a header, whose colon is part of its reason.
 */
function writeHead(
  response: HttpResponse,
  { status, headers }: Reply,
  close: boolean,
  isContinued: boolean,
): void {
  const line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
  if (isContinued) response.writeHeader(`HTTP/1.1 ${line}`, '');
  else response.writeStatus(line);
  for (const name in headers) {
    const value = headers[name] ?? '';
    // Strings are sent as UTF-8, but a header is latin1.
    response.writeHeader(name, /[\x80-\xff]/.test(value) ? Buffer.from(value, 'latin1') : value);
  }
  if (close) response.writeHeader('connection', 'close');
}
