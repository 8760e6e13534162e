import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { arch, platform } from 'node:os';
import { connect as connectTls } from 'node:tls';
import type { MongoOptions } from 'mongodb';
import { storeUnavailable } from '../../../base/errors.ts';
import type { Slot, Slots } from '../../turns/slots.ts';
import { readDocument } from './answer.ts';
import { elementsOf } from './command.ts';
import { HEADER, LaneBroken, encodeMessage, lengthOfReply, type Message } from './message.ts';
import type { Run, Scram } from './scram.ts';

/** For the beginning of a reply, which tells its length before it gets a slot. A page of 100 rows fits. */
const HEAD_BYTES = 32 * 1024;
const KEEP_ALIVE_MS = 120_000; // the driver's value

/** The driver's options for connections. It reads the files that a URI names at its own first connect. */
type ConnectOptions = Pick<MongoOptions, 'tls' | 'connectTimeoutMS' | (typeof TLS_OPTIONS)[number]>;

/** The options that the driver also passes to node:tls (its LEGAL_TLS_SOCKET_OPTIONS). */
const TLS_OPTIONS = [
  ...(['ca', 'cert', 'checkServerIdentity', 'ciphers', 'crl', 'ecdhCurve', 'key', 'minDHSize'] as const),
  ...(['passphrase', 'pfx', 'rejectUnauthorized', 'secureContext', 'secureProtocol', 'servername'] as const),
] as const;

interface Request {
  readonly id: number;
  /** The latest performance.now() at which the reply may be complete. */
  readonly deadline: number;
  readonly resolve: (message: Message) => void;
  readonly reject: (reason: unknown) => void;
  /** Called before `resolve` or `reject`: removes the listener from the signal. */
  readonly settle: () => void;
}

/**
 * One connection to one member, with one request at a time. Replies are read off the socket straight into a slot. Only
 * the bytes that came with the header are copied. A slot keeps its place, but views of it are detached when its memory
 * grows, so each read gets a fresh view. A read under way stays correct, because a memory that grows keeps its place
 * (slots.ts).
 *
 * | state | next state |
 * |---|---|
 * | connecting | idle at `secureConnect` or `connect`; ended when that takes connectTimeoutMS |
 * | idle | busy at `request`; ended after `silenceMs` of no use |
 * | busy | idle when its reply is whole; ended by an abort, a broken message, or a server silent for `silenceMs` |
 * | ended | when the socket is closed, nothing writes to the slot of a cut reply any more: it is released |
 */
export class Connection {
  readonly #socket: Socket;
  readonly #slots: Slots;
  readonly #silenceMs: number;
  readonly #head = Buffer.allocUnsafeSlow(HEAD_BYTES);
  #slot: Slot | null = null;
  #received = 0;
  #length = 0;
  #request: Request | null = null;
  #requests = 0;
  #ended = false;

  /** `onEnd` is called once, when the socket is closed. */
  constructor(address: string, { connect, slots, silenceMs }: OpenOptions, onEnd: () => void) {
    this.#slots = slots;
    this.#silenceMs = silenceMs;
    const onread = { buffer: () => this.#target(), callback: (bytes: number) => this.#onRead(bytes) };
    this.#socket = openSocket(address, connect, onread);
    this.#socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS).setTimeout(silenceMs);
    this.#socket.on('error', (cause) => this.end(new LaneBroken(cause.message, { cause })));
    this.#socket.on('timeout', () => this.end(this.#silence()));
    this.#socket.once('close', () => {
      this.end(new LaneBroken('the server closed the connection'));
      this.#slot?.release();
      this.#slot = null;
      onEnd();
    });
  }

  get isUsable(): boolean {
    return !this.#ended;
  }

  /** Sends a command (see `encodeMessage`). Rejects with the signal's reason, LaneBroken, or `store-unavailable`. */
  request(elements: readonly Uint8Array[], signal?: AbortSignal): Promise<Message> {
    if (this.#request) throw new TypeError('a connection takes one request at a time');
    const id = (this.#requests = (this.#requests + 1) & 0x7fffffff);
    const message = encodeMessage(id, elements);
    return new Promise((resolve, reject) => {
      if (this.#ended) throw new LaneBroken('the connection has ended');
      // An answer that is no longer awaited would occupy the connection. A new connection costs a millisecond.
      const onAbort = () => {
        this.end(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort);
      const settle = () => signal?.removeEventListener('abort', onAbort);
      this.#request = { id, deadline: performance.now() + this.#silenceMs, resolve, reject, settle };
      this.#socket.write(message);
    });
  }

  end(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    const request = this.#request;
    this.#request = null;
    this.#socket.destroy();
    request?.settle();
    request?.reject(reason);
  }

  /** The buffer for the next bytes. Node asks before the first read and then after each one. */
  #target(): Uint8Array {
    return this.#slot
      ? this.#slot.bytes(this.#length).subarray(this.#received)
      : this.#head.subarray(this.#received);
  }

  #onRead(bytes: number): true {
    this.#received += bytes;
    try {
      this.#advance();
    } catch (error) {
      this.end(error);
    }
    return true;
  }

  #advance(): void {
    const request = this.#request;
    if (!request) throw new LaneBroken('the server said something it was not asked');
    if (performance.now() > request.deadline) throw this.#silence();
    if (!this.#slot) {
      if (this.#received < HEADER) return;
      this.#length = lengthOfReply(this.#head, request.id);
      if (this.#received > this.#length) throw new LaneBroken('more came than the reply');
      this.#slot = this.#slots.take(this.#length);
      this.#slot.isFilling = true;
      this.#slot.bytes(this.#received).set(this.#head.subarray(0, this.#received));
    }
    if (this.#received < this.#length) return;
    this.#slot.isFilling = false;
    const message = { slot: this.#slot, length: this.#length };
    this.#slot = null;
    this.#request = null;
    this.#received = 0;
    request.settle();
    request.resolve(message);
  }

  #silence(): unknown {
    return storeUnavailable(new Error(`no whole answer within ${this.#silenceMs} ms`));
  }
}

interface OnRead {
  readonly buffer: () => Uint8Array;
  readonly callback: (bytes: number, buffer: Uint8Array) => boolean;
}

function openSocket(address: string, options: ConnectOptions, onread: OnRead): Socket {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const port = Number(address.slice(colon + 1));
  if (!options.tls) return connectTcp({ host, port, onread });
  const own = Object.fromEntries(
    TLS_OPTIONS.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  );
  // The types omit `onread`, but TLS sockets accept it too. A variable may have fields that the types do not know.
  const settings = { ...(isIP(host) === 0 && { servername: host }), ...own, host, port, onread };
  const socket = connectTls(settings);
  socket.disableRenegotiation();
  return socket;
}

/** MongoDB 6.0. */
const OLDEST_WIRE_VERSION = 17;

export interface OpenOptions {
  readonly slots: Slots;
  readonly connect: ConnectOptions;
  /** Null: the URI names no user. */
  readonly scram: Scram | null;
  readonly applicationName: string;
  /** How long a server may be silent, and how long an idle connection is kept. Milliseconds. */
  readonly silenceMs: number;
}

/** Connects, greets and authenticates within connectTimeoutMS, or rejects with LaneBroken. In the end calls `onEnd`. */
export async function openConnection(address: string, options: OpenOptions, onEnd: () => void) {
  const { connect, scram, applicationName } = options;
  const connection = new Connection(address, options, onEnd);
  const ms = connect.connectTimeoutMS;
  const tooLong = () => connection.end(new LaneBroken(`${address} did not greet within ${ms} ms`));
  const timer = ms > 0 ? setTimeout(tooLong, ms) : undefined; // 0: as long as it may be silent
  const run: Run = async (command) => readDocument(await connection.request([elementsOf(command)]));
  try {
    const client = {
      // At most 128 bytes. It distinguishes the lane from the driver in the server's log and profile.
      application: { name: `${applicationName.slice(0, 100)} data lane` },
      driver: { name: 'sluice', version: '1' },
      os: { type: platform(), architecture: arch() },
      platform: `Node.js ${process.version}`,
    };
    const hello = await run({ hello: 1, client, ...scram?.helloQuestion, $db: 'admin' });
    if (!(Number(hello.maxWireVersion) >= OLDEST_WIRE_VERSION))
      throw new LaneBroken(`${address} speaks wire version ${String(hello.maxWireVersion)}`);
    await scram?.authenticate(run, hello.saslSupportedMechs);
    return connection;
  } catch (error) {
    const broken =
      error instanceof LaneBroken ? error : new LaneBroken(`${address}: ${String(error)}`, { cause: error });
    connection.end(broken);
    throw broken;
  } finally {
    clearTimeout(timer);
  }
}
