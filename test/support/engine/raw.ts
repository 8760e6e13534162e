import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** How long a test waits for more data. Milliseconds. */
const PATIENCE_MS = 15_000;

/** A connection that sends given bytes and keeps everything received, as latin1 text. */
export class RawClient {
  readonly socket: Socket;
  text = '';
  closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (data: string) => (this.text += data));
    // A server may also close a connection by a reset.
    socket.on('error', () => (this.closed = true));
    socket.on('close', () => (this.closed = true));
  }

  static async connect(t: TestContext, port: number): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1');
    t.after(() => socket.destroy());
    const client = new RawClient(socket);
    await once(socket, 'connect');
    return client;
  }

  send(text: string): this {
    this.socket.write(text, 'latin1');
    return this;
  }

  /**
   * Waits until `enough` returns true for the received text. Rejects when the connection closes before that.
   */
  async until(enough: (text: string) => boolean): Promise<string> {
    await this.wait(() => enough(this.text) || this.closed);
    if (!enough(this.text)) throw new Error(`closed after ${JSON.stringify(this.text.slice(-500))}`);
    return this.text;
  }

  async untilClosed(): Promise<string> {
    await this.wait(() => this.closed);
    return this.text;
  }

  private wait(done: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        stop();
        reject(new Error(`nothing more came after ${JSON.stringify(this.text.slice(-500))}`));
      }, PATIENCE_MS);
      const look = () => {
        if (!done()) return void timer.refresh();
        stop();
        resolve();
      };
      const stop = () => {
        clearTimeout(timer);
        for (const event of ['data', 'error', 'close']) this.socket.off(event, look);
      };
      for (const event of ['data', 'error', 'close']) this.socket.on(event, look);
      look();
    });
  }
}

/** Sends `text` on a new connection and resolves with everything received until the server closed it. */
export async function rawExchange(t: TestContext, port: number, text: string): Promise<string> {
  return (await RawClient.connect(t, port)).send(text).untilClosed();
}

/** The text of a GET request, or of another method without a body. */
export function request(path: string, headers: readonly string[] = [], method = 'GET'): string {
  return [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (...value: [T] extends [undefined] ? [] : [T]) => void;
}

/** A promise that a test settles, or that it awaits while a handler settles it. */
export function deferred<T = undefined>(): Deferred<T> {
  let settle: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => (settle = resolve));
  return { promise, resolve: (...value) => settle(value[0] as T) };
}
