import { setTimeout as sleep } from 'node:timers/promises';
import type { Compression } from '../pull/proved-rows.ts';
import { provedRows } from '../pull/proved-rows.ts';
import { DEFAULTS } from '../pull/pull.ts';
import { Interruption, Mismatch, REAL_CLOCK, Refusal } from '../pull/retry.ts';
import { outcomeOfFailure } from './counts.ts';
import type { Faults } from './faults.ts';
import { rowReading, typeOf } from './forms/form.ts';
import type { Requests } from './http/requests.ts';
import { StreamContent } from './http/stream-content.ts';
import type { Recorder } from './recorder.ts';
import type { PullerRow } from './result.ts';

interface PullerOptions {
  readonly requests: Requests;
  /** The URL of a stream. */
  readonly url: URL;
  /** A format of streams. */
  readonly format: string;
  readonly compression: Compression;
  /** The speed at which it reads. null: full speed. */
  readonly bytesPerSecond: number | null;
  readonly recorder: Recorder;
  readonly faults: Faults;
  /** Ends the puller. */
  readonly signal: AbortSignal;
}

/** The pause after a failure before a new request for a stream without proofs. Milliseconds. */
const PAUSE_MS = 1000;
/** A puller goes on as long as the run. Milliseconds. */
const RETRY_FOR_MS = 86_400_000;

/** Pulls a stream again and again, and proves what comes. */
export class Puller {
  readonly #options: PullerOptions;
  readonly #began = performance.now();
  #content: StreamContent | null = null;
  #isCutByUs = false;
  #row: { -readonly [Name in keyof PullerRow]: PullerRow[Name] };

  constructor(options: PullerOptions) {
    const { url, bytesPerSecond } = options;
    this.#options = options;
    this.#row = {
      kind: bytesPerSecond === null ? 'full' : 'slow',
      query: url.pathname + url.search,
      whole: 0,
      rows: 0,
      bytes: 0,
      rowsPerSecond: 0,
      firstByte: null,
      longestGap: 0,
      cutByUs: 0,
      cut: 0,
      refused: 0,
      proof: 'none',
      provedRows: 0,
      reason: null,
    };
  }

  /** Whether a stream is open now. */
  get isOpen(): boolean {
    return this.#content !== null;
  }

  row(): PullerRow {
    const row = this.#row;
    const seconds = Math.max(0.001, (performance.now() - this.#began) / 1000);
    const partly = row.proof === 'none' && row.provedRows > 0;
    return {
      ...row,
      rowsPerSecond: Math.round(row.rows / seconds),
      longestGap: Math.round(row.longestGap * 10) / 10,
      proof: partly ? 'partly' : row.proof,
    };
  }

  /** Cuts the connection of the stream. The puller resumes it. */
  cut(): void {
    if (!this.#content) return;
    this.#row.cutByUs++;
    this.#isCutByUs = true;
    this.#content.close();
  }

  /** Pulls until the signal is aborted, or the server refuses for good. */
  async run(): Promise<void> {
    const { signal, format } = this.#options;
    const pull = () => (format === 'ndjson' ? this.#prove() : this.#read());
    while (!signal.aborted && (await this.#once(pull)));
  }

  /** Closes the connection. Call it when the signal is aborted. */
  close(): void {
    this.#content?.close();
  }

  /** Resolves with whether to pull again. */
  async #once(pull: () => Promise<void>): Promise<boolean> {
    const { signal } = this.#options;
    try {
      await pull();
      this.#row.whole++;
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (!(error instanceof Interruption || error instanceof Refusal)) throw error;
      this.#failed(error);
      if (error instanceof Refusal) return false;
      return sleep(PAUSE_MS, true, { signal }).catch(() => false);
    }
  }

  /** NDJSON with checkpoints, resumed after cuts until it is whole. */
  async #prove(): Promise<void> {
    const { url, compression, recorder, signal } = this.#options;
    const options = {
      ...DEFAULTS,
      compression,
      signal,
      clock: REAL_CLOCK,
      retryForMs: RETRY_FOR_MS,
      getContent: (to: URL, accept: string) => this.#getContent(to, accept, compression),
      onInterrupted: (failure: Interruption) => this.#failed(failure),
    };
    for await (const step of provedRows(url, options)) {
      if (step.kind === 'rows') {
        this.#row.rows += step.rows;
        recorder.add('rows', step.rows);
        await this.#slowDown(step.bytes.length);
      } else if (step.kind === 'proof') this.#row.provedRows += step.rows;
    }
    this.#setProof('proved');
    recorder.count('ok');
  }

  /** A format without checkpoint lines. It is not resumed. */
  async #read(): Promise<void> {
    const { url, format, compression, recorder } = this.#options;
    const to = new URL(url);
    to.searchParams.set('format', format);
    const content = await this.#getContent(to, typeOf(format), compression);
    const { reading, isProved } = rowReading(format);
    for await (const piece of content) {
      const rows = reading.add(piece);
      this.#row.rows += rows;
      if (isProved) this.#row.provedRows += rows;
      recorder.add('rows', rows);
      await this.#slowDown(piece.length);
    }
    if (!this.#content?.isWhole) throw new Interruption('the connection was cut');
    reading.end();
    this.#setProof(isProved ? 'proved' : 'framing');
    recorder.count(isProved ? 'ok' : 'unproved');
  }

  async #getContent(url: URL, accept: string, compression: Compression) {
    const { requests, recorder } = this.#options;
    const coding = compression === 'none' ? 'identity' : compression;
    const path = url.pathname + url.search;
    const row = this.#row;
    const traceId = requests.newTrace();
    const request = requests.get(path, { accept, coding, trace: traceId });
    const content = new StreamContent(requests.origin, request, {
      bytes: (number) => {
        row.bytes += number;
        recorder.add('bytes', number);
      },
      firstByte: (ms, head) => {
        row.firstByte ??= Math.round(ms * 10) / 10;
        recorder.latency('firstByte', ms);
        recorder.slow(ms, () => ({
          kind: 'stream',
          waited: 0,
          query: path,
          status: head.status,
          requestId: head.header('x-request-id'),
          traceId,
        }));
      },
      gap: (ms) => (row.longestGap = Math.max(row.longestGap, ms)),
    });
    this.#content = content;
    recorder.count('arrivals');
    const head = await content.head(accept);
    return content.decoded(head.header('content-encoding'));
  }

  async #slowDown(bytes: number): Promise<void> {
    const { bytesPerSecond, signal } = this.#options;
    if (bytesPerSecond === null) return;
    await sleep((bytes / bytesPerSecond) * 1000, undefined, { signal }).catch(() => undefined);
  }

  #failed(failure: Interruption | Refusal): void {
    const { recorder, faults, signal } = this.#options;
    this.#content = null;
    if (signal.aborted) return;
    if (this.#isCutByUs) {
      this.#isCutByUs = false;
      if (!(failure instanceof Mismatch) && failure.status === undefined) return;
    }
    const outcome = outcomeOfFailure(failure);
    recorder.count(outcome);
    faults.add(outcome, failure.message);
    this.#row.reason = failure.message;
    if (outcome === 'wrong') this.#row.proof = 'wrong';
    else if (outcome === 'cut') this.#row.cut++;
    else this.#row.refused++;
  }

  #setProof(proof: PullerRow['proof']): void {
    this.#content = null;
    if (this.#row.proof !== 'wrong') this.#row.proof = proof;
  }
}
