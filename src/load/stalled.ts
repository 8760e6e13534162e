import type { Head } from './http/answer-reader.ts';
import { Connection, type AnswerRecord } from './http/connection.ts';
import type { Requests } from './http/requests.ts';
import { outcomeOf } from './counts.ts';
import type { Faults } from './faults.ts';
import type { Recorder } from './recorder.ts';
import type { PullerRow } from './result.ts';

const AGAIN_MS = 1000;

/** Begins a stream and then reads nothing. When the server cuts the stream, as it should after STALL_TIMEOUT, the reader begins again. */
export class StalledReader implements AnswerRecord {
  readonly #connection: Connection;
  readonly #request: string;
  readonly #query: string;
  readonly #recorder: Recorder;
  readonly #faults: Faults;
  #timer: NodeJS.Timeout | undefined;
  #sent = 0;
  #status = 0;
  #firstByte: number | null = null;
  #bytes = 0;
  #cut = 0;
  #refused = 0;
  #reason: string | null = null;
  isOpen = false;

  constructor(requests: Requests, url: URL, recorder: Recorder, faults: Faults) {
    this.#connection = new Connection(requests.origin, { keeps: true });
    this.#query = url.pathname + url.search;
    this.#request = requests.get(this.#query, { accept: '*/*', coding: 'identity' });
    this.#recorder = recorder;
    this.#faults = faults;
  }

  start(): void {
    this.#sent = performance.now();
    this.#status = 0;
    this.#recorder.count('arrivals');
    this.#connection.send(this.#request, this);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#connection.close();
  }

  row(): PullerRow {
    return {
      kind: 'stalled',
      query: this.#query,
      whole: 0,
      rows: 0,
      bytes: this.#bytes,
      rowsPerSecond: 0,
      firstByte: this.#firstByte,
      longestGap: 0,
      cutByUs: 0,
      cut: this.#cut,
      refused: this.#refused,
      proof: 'none',
      provedRows: 0,
      reason: this.#reason,
    };
  }

  onHead({ status }: Head): void {
    this.#status = status;
    if (status === 200) return;
    this.#refused++;
    this.#reason = `the server answered ${status}`;
    this.#recorder.count(outcomeOf(status));
    this.#faults.add(outcomeOf(status), this.#reason);
  }

  onBody(piece: Buffer): void {
    if (this.#status !== 200) return;
    this.isOpen = true;
    this.#bytes += piece.length;
    this.#firstByte ??= Math.round((performance.now() - this.#sent) * 10) / 10;
    this.#connection.pause();
  }

  /** The stream was so short that the system took all of it. */
  onEnd(): void {
    this.#again();
  }

  onCut(reason: Error): void {
    this.#cut++;
    this.#reason = reason.message;
    if (!this.isOpen) this.#recorder.count('cut');
    this.#again();
  }

  #again(): void {
    this.isOpen = false;
    this.#timer = setTimeout(() => this.start(), AGAIN_MS);
  }
}
