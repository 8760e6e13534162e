import { setTimeout as sleep } from 'node:timers/promises';
import type { Faults } from './faults.ts';
import type { Requests } from './http/requests.ts';
import { CheckedPage } from './page-check.ts';
import { PageReader, type PageEnd } from './page-reader.ts';
import type { Mix, PageQuery } from './queries.ts';
import type { Recorder } from './recorder.ts';
import type { Schedule } from './schedule.ts';

interface PagesOptions {
  readonly requests: Requests;
  readonly connections: number;
  readonly mix: Mix;
  readonly recorder: Recorder;
  readonly faults: Faults;
  readonly now: () => number;
  readonly random: () => number;
  /** The codings that the connections ask for, by turns. */
  readonly codings: readonly string[];
  /** At most one page in this time is read as JSON and checked. Milliseconds. null: none is checked. */
  readonly checkMs: number | null;
}

/** A request may be sent this much before its time, with the timer before it. Then it counts from its sending. Milliseconds. */
const EARLY_MS = 1;
const LONGEST_TIMER_MS = 100;
/** The pause of a connection after the server could not be reached. Milliseconds. */
const UNREACHABLE_MS = 100;
/** The share of requests that are conditional. */
const CONDITIONAL = 0.1;
const DRAIN_STEP_MS = 10;

/** Readers of pages on a number of connections, by a schedule (open model) or as fast as answers come (closed model). */
export class Pages {
  readonly #options: PagesOptions;
  readonly #readers: PageReader[];
  readonly #idle: PageReader[];
  #schedule: Schedule | null = null;
  #began = 0;
  /** Arrivals of the schedule that were due, and those that were sent. */
  #due = 0;
  #sent = 0;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #checkedAt = -Infinity;

  constructor(options: PagesOptions) {
    this.#options = options;
    const { requests, now, random, codings } = options;
    this.#readers = Array.from(
      { length: options.connections },
      (_, i) =>
        new PageReader({
          requests,
          now,
          random,
          conditional: CONDITIONAL,
          coding: codings[i % codings.length] ?? 'identity',
          check: (query) => this.#check(query),
          onEnd: (reader, end) => this.#ended(reader, end),
        }),
    );
    this.#idle = [...this.#readers];
  }

  /** Requests that were due or sent, and are not answered. */
  get waiting(): number {
    return this.#due - this.#sent + this.#readers.filter(({ waitsSince }) => waitsSince !== null).length;
  }

  /** Pages per second that the schedule asks for now. null in the closed model. */
  get asked(): number | null {
    return this.#schedule?.rateAt(this.#options.now() - this.#began) ?? null;
  }

  /** Begins an open model. */
  start(schedule: Schedule): void {
    this.#schedule = schedule;
    this.#began = this.#options.now();
    this.#due = 0;
    this.#sent = 0;
    this.#tick();
  }

  /** Begins a closed model. */
  startClosed(): void {
    this.#isClosed = true;
    for (const reader of this.#idle.splice(0)) this.#free(reader);
  }

  /**
   * Ends the arrivals. Waits for outstanding answers, at most `ms` milliseconds. Missing answers then count as
   * unanswered, with their latency so far.
   */
  async stop(ms: number, signal: AbortSignal): Promise<void> {
    clearTimeout(this.#timer);
    const { now, recorder } = this.#options;
    const schedule = this.#schedule;
    this.#isClosed = false;
    for (const end = now() + ms; this.waiting > 0 && now() < end && !signal.aborted;)
      await sleep(DRAIN_STEP_MS);
    const times = this.#readers.map(({ waitsSince }) => waitsSince).filter((time) => time !== null);
    for (; schedule && this.#sent < this.#due; this.#sent++)
      times.push(this.#began + schedule.at(this.#sent));
    for (const time of times) {
      recorder.count('unanswered');
      recorder.latency('pages', now() - time);
    }
    this.#schedule = null;
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const reader of this.#readers) reader.close();
  }

  #tick(): void {
    const { now, recorder } = this.#options;
    const schedule = this.#schedule;
    if (!schedule) return;
    const passed = now() - this.#began;
    const before = this.#due;
    while (schedule.at(this.#due) <= passed + EARLY_MS) this.#due++;
    if (this.#due > before) recorder.count('arrivals', this.#due - before);
    this.#send();
    const left = schedule.at(this.#due) - EARLY_MS - (now() - this.#began);
    this.#timer = setTimeout(() => this.#tick(), Math.min(LONGEST_TIMER_MS, Math.max(1, left)));
  }

  #send(): void {
    const schedule = this.#schedule;
    while (schedule && this.#sent < this.#due) {
      const reader = this.#idle.shift();
      if (!reader) return;
      reader.ask(this.#options.mix.next(), this.#began + schedule.at(this.#sent++));
    }
  }

  #free(reader: PageReader): void {
    const { now, mix, recorder } = this.#options;
    if (!this.#isClosed) {
      this.#idle.push(reader);
      this.#send();
      return;
    }
    recorder.count('arrivals');
    reader.ask(mix.next(), now());
  }

  #ended(reader: PageReader, { outcome, intended, shown, reason, isUnreachable }: PageEnd): void {
    const { now, recorder, faults } = this.#options;
    recorder.page(outcome, now() - intended, shown);
    if (reason !== null) faults.add(outcome, reason);
    if (isUnreachable) setTimeout(() => this.#free(reader), UNREACHABLE_MS);
    else this.#free(reader);
  }

  #check({ path }: PageQuery): CheckedPage | null {
    const { checkMs } = this.#options;
    const now = this.#options.now();
    if (checkMs === null || now - this.#checkedAt < checkMs) return null;
    this.#checkedAt = now;
    return new CheckedPage(path);
  }
}
