import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import type { LoopTurns } from '../../store/turns/loop-turns.ts';

/** What node's parser reads at once: at most 113 requests, 2 ms of work. A read of a socket brings up to 64 KiB. */
const PIECE_BYTES = 2048;
/** For how long one connection is parsed in a row. Milliseconds. */
const PARSE_MS = 2;
/** Behind so many requests that wait for those before them, a connection is not read on. */
const MOST_WAITING = 100;
const END_OF_HEAD = '\r\n\r\n';

const connections = new WeakMap<Duplex, Arrivals>();

/**
 * What arrives on a connection, given to node's parser in pieces. Left alone, the parser creates all requests of a read of
 * 64 KiB before the process does anything else: 10,000 that were pipelined held the loop for 150 ms on an idle machine.
 */
export class Arrivals {
  readonly #socket: Socket;
  readonly #turns: LoopTurns;
  readonly #push: Socket['push'];
  /** What the parser has not got yet. null: the client has ended. */
  readonly #rest: (Buffer | null)[] = [];
  #waiting = 0;
  /** Whether a turn to parse is asked for. */
  #hasTurn = false;

  /** Reads a connection that an HTTP server has just taken at a fair pace. `turns` are those of all its connections. */
  static pace(socket: Socket, turns: LoopTurns): void {
    connections.set(socket, new Arrivals(socket, turns));
    // The parser reads a socket without its stream, until a listener is there that wants the data, too.
    socket.on('data', () => undefined);
  }

  static of(socket: Duplex): Arrivals | undefined {
    return connections.get(socket);
  }

  private constructor(socket: Socket, turns: LoopTurns) {
    this.#socket = socket;
    this.#turns = turns;
    this.#push = socket.push.bind(socket);
    const read = socket._read.bind(socket);
    socket.push = (chunk: Buffer | null) => this.#take(chunk);
    socket._read = (size) => {
      if (this.#rest.length === 0) read(size);
      else this.#goOn();
    };
  }

  /** A request of this connection waits for the one before it. */
  waits(): void {
    this.#waiting++;
  }

  /** A request that waited has its turn. */
  begins(): void {
    this.#waiting--;
    if (this.#rest.length > 0) this.#goOn();
  }

  /** Takes what was read, as Readable.push does: false asks the socket to read nothing more for now. */
  #take(chunk: Buffer | null): boolean {
    const isShort = chunk === null || chunk.length <= PIECE_BYTES;
    if (isShort && this.#rest.length === 0 && this.#waiting < MOST_WAITING) return this.#push(chunk);
    this.#rest.push(chunk);
    this.#goOn();
    return false;
  }

  #goOn(): void {
    if (this.#hasTurn || this.#waiting >= MOST_WAITING) return;
    this.#hasTurn = true;
    void this.#turns.next().then(() => {
      this.#hasTurn = false;
      this.#parse();
    });
  }

  #parse(): void {
    const end = performance.now() + PARSE_MS;
    while (this.#rest.length > 0 && this.#waiting < MOST_WAITING) {
      if (this.#socket.destroyed) return;
      if (performance.now() >= end) {
        this.#goOn();
        return;
      }
      this.#parsePiece();
    }
  }

  #parsePiece(): void {
    const chunk = this.#rest.shift() ?? null;
    if (chunk === null) {
      this.#push(null);
      this.#socket.read(0); // as node does behind the end
      return;
    }
    const length = pieceLength(chunk);
    if (length < chunk.length) this.#rest.unshift(chunk.subarray(length));
    this.#push(chunk.subarray(0, length));
  }
}

/** A piece ends behind a head where it can: node's time limits go on for a request that it has in part. */
function pieceLength(chunk: Buffer): number {
  if (chunk.length <= PIECE_BYTES) return chunk.length;
  const end = chunk.subarray(0, PIECE_BYTES).lastIndexOf(END_OF_HEAD);
  return end === -1 ? PIECE_BYTES : end + END_OF_HEAD.length;
}
