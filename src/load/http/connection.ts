import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AnswerReader, type AnswerParts } from './answer-reader.ts';

/** What becomes of a request: the parts of its answer, or the reason why there is no more of it. */
export interface AnswerRecord extends AnswerParts {
  onCut(reason: Error): void;
}

const READ_BYTES = 256 * 1024;
/** Bytes are used before the next socket is read, so all sockets share this memory. */
const shared = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * A connection to the origin of a URL, over TLS for https, that sends one request at a time. It opens with the first
 * request, and again when the server has closed it in between. It costs little: bodies are passed on where the system
 * wrote them.
 */
export class Connection {
  readonly #origin: URL;
  /** Whether pieces of bodies remain valid after onBody. */
  readonly #keeps: boolean;
  #socket: Socket | null = null;
  #request = '';
  #answered: AnswerRecord | null = null;
  /** Whether this socket has answered a request before: the server may have closed it since. */
  #isReused = false;
  /** Whether the answer has begun. */
  #hasBegun = false;

  constructor(origin: URL, { keeps = false }: { readonly keeps?: boolean } = {}) {
    this.#origin = origin;
    this.#keeps = keeps;
  }

  /** Sends a request, head and body as they are. The answer before it must have ended. */
  send(request: string, answered: AnswerRecord): void {
    if (this.#answered) throw new TypeError('the connection waits for an answer');
    this.#request = request;
    this.#answered = answered;
    this.#hasBegun = false;
    this.#isReused = this.#socket !== null;
    this.#socket ??= this.#open();
    this.#socket.write(request, 'latin1');
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** Closes the connection. An answer that has not ended is not heard of any more. */
  close(): void {
    this.#answered = null;
    this.#drop();
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.destroy();
  }

  #open(): Socket {
    const { protocol, hostname, port } = this.#origin;
    const isTls = protocol === 'https:';
    const host = hostname.replace(/^\[|\]$/g, '');
    const to = { host, port: Number(port) || (isTls ? 443 : 80) };
    const reader = new AnswerReader({
      onHead: (head) => this.#answered?.onHead(head),
      onBody: (piece) => this.#answered?.onBody(piece),
      onEnd: () => this.#ended(),
    });
    const take = (bytes: Buffer): void => {
      if (this.#socket !== socket) return;
      this.#hasBegun = true;
      try {
        reader.push(bytes);
      } catch (error) {
        this.#cut(error instanceof Error ? error : new Error(String(error)));
      }
    };
    const onread = {
      buffer: shared,
      callback: (length: number): boolean => {
        take(shared.subarray(0, length));
        return true;
      },
    };
    const socket: Socket = isTls
      ? connectTls({ ...to, ...(/[a-z]/i.test(host) && !host.includes(':') && { servername: host }) })
      : connectPlain(this.#keeps ? to : { ...to, onread });
    if (isTls || this.#keeps) socket.on('data', take);
    socket.setNoDelay(true);
    let failure: Error | null = null;
    socket.on('error', (error) => (failure = error));
    socket.on('close', () => {
      if (this.#socket === socket) this.#closed(reader, failure ?? new Error('the connection was closed'));
    });
    return socket;
  }

  #ended(): void {
    const answered = this.#answered;
    this.#answered = null;
    answered?.onEnd();
  }

  #closed(reader: AnswerReader, reason: Error): void {
    this.#socket = null;
    if (!this.#answered || reader.close()) return;
    if (!this.#isReused || this.#hasBegun) {
      this.#cut(reason);
      return;
    }
    this.#isReused = false; // the server closed an idle connection while the request was under way
    this.#socket = this.#open();
    this.#socket.write(this.#request, 'latin1');
  }

  #cut(reason: Error): void {
    const answered = this.#answered;
    this.close();
    answered?.onCut(reason);
  }
}
