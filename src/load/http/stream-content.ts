import { once } from 'node:events';
import type { Transform } from 'node:stream';
import { decoderOf } from '../../pull/http.ts';
import { failureOf, Interruption, Mismatch, Refusal, retryAfterMs } from '../../pull/retry.ts';
import { clipped } from '../../terminal/text.ts';
import { reasonOf } from '../../base/error-reason.ts';
import { NotHttp, type Head } from './answer-reader.ts';

import { Connection, type AnswerRecord } from './connection.ts';

/** What a stream does, for those who measure it. */
interface StreamEvents {
  /** Bytes of the body came, as they were sent. */
  bytes(number: number): void;
  /** The body has begun. `ms`: since the request was sent. */
  firstByte(ms: number, head: Head): void;
  /** The reader waited so long for the next piece of the body. Milliseconds. */
  gap(ms: number): void;
}

const LONGEST_PROBLEM = 64 * 1024;
/** A server that sends nothing for this long is given up. Heartbeats of streams come more often. Milliseconds. */
const SILENCE_MS = 60_000;

/**
 * The answer to the request of a stream, on a connection of its own. Its body is read no faster than it is taken: at most
 * one read of the socket is kept.
 */
export class StreamContent implements AnswerRecord {
  readonly #connection: Connection;
  readonly #events: StreamEvents;
  readonly #sent = performance.now();
  readonly #head: Promise<Head>;
  #gotHead: (head: Head) => void = () => undefined;
  #failed: (reason: Error) => void = () => undefined;
  #headCame: Head | null = null;
  #pieces: Buffer[] = [];
  #hasBegun = false;
  #failure: Error | null = null;
  #wake: () => void = () => undefined;
  /** Whether the body ended as HTTP says. A body that was cut just ends. */
  isWhole = false;

  constructor(origin: URL, request: string, events: StreamEvents) {
    this.#events = events;
    this.#head = new Promise((resolve, reject) => {
      this.#gotHead = resolve;
      this.#failed = reject;
    });
    this.#connection = new Connection(origin, { keeps: true });
    this.#connection.send(request, this);
  }

  /** The head of an answer with 200 and this type, null for any. Rejects with Interrupted or Refused for another one. */
  async head(type: string | null = null): Promise<Head> {
    const head = await this.#head.catch((error: unknown) => {
      const Failure = error instanceof NotHttp ? Mismatch : Interruption;
      throw new Failure(reasonOf(error), { cause: error });
    });
    if (head.status !== 200)
      throw failureOf(head.status, await this.#problem(head), retryAfterMs(head.header('retry-after')));
    const sent = head.header('content-type') ?? 'no content type';
    if (type === null || sent.split(';')[0] === type) return head;
    this.close();
    throw new Refusal(`the server answered with ${clipped(sent)}, not with ${type}`);
  }

  /** The decoded body. It ends where the connection ends, whole or cut. Rejects with Mismatched when it cannot be decoded. */
  async *decoded(coding: string | null): AsyncGenerator<Buffer, void, undefined> {
    if (coding === null || coding === 'identity') return yield* this.raw();
    const decoder = decoderOf(coding);
    if (!decoder) throw new Mismatch(`the server answered with the content coding ${clipped(coding)}`);
    void this.#feed(decoder);
    try {
      yield* decoder as AsyncIterable<Buffer>;
    } catch (error) {
      if (error instanceof Mismatch) throw error;
      throw new Mismatch(`the answer cannot be decompressed: ${reasonOf(error)}`, { cause: error });
    } finally {
      decoder.destroy();
      this.close();
    }
  }

  /** Never rejects: the decoder fails in its place. */
  async #feed(decoder: Transform): Promise<void> {
    try {
      for await (const piece of this.raw()) if (!decoder.write(piece)) await once(decoder, 'drain');
      decoder.end();
    } catch (error) {
      decoder.destroy(error instanceof Error ? error : new Error(reasonOf(error)));
    }
  }

  /** The body as it was sent. */
  async *raw(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        if (this.#pieces.length === 0) {
          if (this.isWhole || this.#failure) break;
          await this.#more();
        }
        const pieces = this.#pieces;
        this.#pieces = [];
        yield* pieces;
        this.#connection.resume();
      }
      if (this.#failure instanceof NotHttp) throw new Mismatch(this.#failure.message);
    } finally {
      this.close();
    }
  }

  /** Cuts the connection. The body ends here. */
  close(): void {
    this.#connection.close();
    if (!this.isWhole) this.onCut(new Error('the connection was closed'));
  }

  onHead(head: Head): void {
    this.#headCame = head;
    this.#gotHead(head);
  }

  onBody(piece: Buffer): void {
    if (!this.#hasBegun && this.#headCame?.status === 200) {
      this.#hasBegun = true;
      this.#events.firstByte(performance.now() - this.#sent, this.#headCame);
    }
    this.#events.bytes(piece.length);
    this.#pieces.push(piece);
    this.#connection.pause();
    this.#wake();
  }

  onEnd(): void {
    this.isWhole = true;
    this.#wake();
  }

  onCut(reason: Error): void {
    this.#failure ??= reason;
    this.#failed(reason);
    this.#wake();
  }

  async #more(): Promise<void> {
    const began = performance.now();
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      const silent = () => this.onCut(new Error(`the server sent nothing for ${SILENCE_MS / 1000} s`));
      timer = setTimeout(silent, SILENCE_MS);
    });
    clearTimeout(timer);
    if (this.#hasBegun) this.#events.gap(performance.now() - began);
  }

  async #problem(head: Head): Promise<string> {
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of this.raw()) {
      pieces.push(piece);
      if ((bytes += piece.length) > LONGEST_PROBLEM) break;
    }
    const detail = /"detail":"((?:[^"\\]|\\.)*)"/.exec(Buffer.concat(pieces).toString())?.[1] ?? '';
    return `the server answered ${head.status}${detail && `: ${clipped(detail)}`}`;
  }
}
