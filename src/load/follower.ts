import { setTimeout as sleep } from 'node:timers/promises';
import { CHANGE_BEGINNINGS, LineReader } from '../pull/lines.ts';
import { BEGINNING, readAnswer } from '../pull/proof.ts';
import { failureOf, Interruption, Mismatch, Refusal } from '../pull/retry.ts';
import { outcomeOfFailure } from './counts.ts';
import type { Faults } from './faults.ts';
import { Finder } from './finder.ts';
import { answerTo } from './http/get.ts';
import { reasonOf } from '../base/error-reason.ts';
import type { Requests } from './http/requests.ts';
import { StreamContent } from './http/stream-content.ts';
import type { Recorder } from './recorder.ts';

interface FollowerOptions {
  readonly requests: Requests;
  /** The path of the feed of changes. */
  readonly path: string;
  readonly recorder: Recorder;
  readonly faults: Faults;
  readonly signal: AbortSignal;
}

const NDJSON = { accept: 'application/x-ndjson', coding: 'identity' };
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;

/** Follows the changes of a set, from now on, and proves what comes. After a cut it goes on from the last checkpoint. */
export class Follower {
  readonly #options: FollowerOptions;
  #content: StreamContent | null = null;
  #place = BEGINNING;
  #sought: { readonly finder: Finder; readonly found: () => void } | null = null;
  #isOpen = false;
  hasBegun = false;
  cuts = 0;
  refusals = 0;
  /** The longest time without a byte. Milliseconds. */
  longestSilence = 0;

  /** `cursor`: where it begins. */
  constructor(options: FollowerOptions, cursor: string) {
    this.#options = options;
    this.#place = { ...BEGINNING, cursor };
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Calls `found` once, when this text has come in a line. */
  look(text: string, found: () => void): void {
    this.#sought = { finder: new Finder(text), found };
  }

  /** Follows until the signal is aborted, or the server refuses for good. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    for (let pause = FIRST_PAUSE_MS; !this.#isOver(); pause = Math.min(LONGEST_PAUSE_MS, pause * 2)) {
      try {
        await this.#follow(() => (pause = FIRST_PAUSE_MS));
        throw new Interruption('the connection was cut');
      } catch (error) {
        this.#isOpen = false;
        this.#content?.close();
        if (this.#isOver()) return;
        if (!(error instanceof Interruption || error instanceof Refusal)) throw error;
        this.#failed(error);
        if (error instanceof Refusal && error.status !== 410) return;
        if (error instanceof Refusal) this.#place = BEGINNING; // these changes are gone
        await sleep(pause, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #follow(arrived: () => void): Promise<void> {
    const { recorder } = this.#options;
    const { requests, path } = this.#options;
    const cursor = this.#place.cursor ?? (await cursorOfNow(requests, path));
    const content = await this.#open(cursor);
    const from = { ...this.#place, cursor };
    const lines = new LineReader(CHANGE_BEGINNINGS);
    for await (const step of readAnswer(content, from, lines)) {
      if (step.kind === 'rows') {
        recorder.add('lines', step.rows);
        this.#seek(Buffer.from(step.bytes.buffer, step.bytes.byteOffset, step.bytes.length));
        continue;
      }
      arrived();
      recorder.add('heartbeats', 1);
      this.#place = { ...step.place, ended: false };
    }
  }

  async #open(cursor: string): Promise<AsyncIterable<Buffer>> {
    const { requests, path, recorder } = this.#options;
    const url = `${path}${path.includes('?') ? '&' : '?'}since=${encodeURIComponent(cursor)}&follow=true`;
    const content = new StreamContent(requests.origin, requests.get(url, NDJSON), {
      bytes: () => undefined,
      firstByte: () => undefined,
      gap: (ms) => (this.longestSilence = Math.max(this.longestSilence, ms)),
    });
    this.#content = content;
    recorder.count('arrivals');
    await content.head(NDJSON.accept);
    this.#isOpen = true;
    this.hasBegun = true;
    return content.raw();
  }

  #isOver(): boolean {
    return this.#options.signal.aborted;
  }

  /** Closes the connection. Call it when the signal is aborted. */
  close(): void {
    this.#content?.close();
  }

  #seek(bytes: Buffer): void {
    if (!this.#sought?.finder.isIn(bytes)) return;
    const { found } = this.#sought;
    this.#sought = null;
    found();
  }

  #failed(failure: Interruption | Refusal): void {
    const { recorder, faults } = this.#options;
    const outcome = outcomeOfFailure(failure);
    recorder.count(outcome);
    faults.add(outcome, `a follower: ${failure.message}`);
    if (failure.status) this.refusals++;
    else this.cuts++;
  }
}

/**
 * The cursor before all changes from now on. Rejects with Interrupted, Refused or Mismatched when the server returns
 * none.
 */
export async function cursorOfNow(requests: Requests, path: string): Promise<string> {
  const { head, body } = await answerTo(requests.origin, requests.get(path, NDJSON)).catch(
    (error: unknown) => {
      throw new Interruption(reasonOf(error), { cause: error });
    },
  );
  if (head.status !== 200) throw failureOf(head.status, `${path} answered ${head.status}`);
  const cursor = /"cursor":"([^"]+)"/.exec(body.toString())?.[1];
  if (cursor === undefined) throw new Mismatch(`${path} answered without a cursor`);
  return cursor;
}
