import type { Counting, Outcome } from './counts.ts';
import type { ClientSide, Phase, Second, ServerSide } from './figures.ts';
import { meanOfClient, meanOfServer } from './means.ts';
import type { LatencyKind, SlowRequest } from './result.ts';
import { Slowest } from './slowest.ts';
import { Tally, type Sums } from './tally.ts';

/** The values that are read at the end of each second. */
interface Gauges {
  /** See Second. */
  readonly asked: number | null;
  readonly waiting: number;
  readonly streams: number;
  readonly followers: number;
  readonly client: ClientSide;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Collects what a run measures, by the second and by the phase. Its memory grows by one entry for each second. */
export class Recorder {
  readonly #now: () => number;
  readonly #began: number;
  readonly #gauges: () => Gauges;
  readonly #series: Writable<Second>[] = [];
  readonly #phases: Phase[] = [];
  readonly #slowest = new Slowest();
  readonly #second = new Tally();
  readonly #whole = new Tally();
  #phase = new Tally();
  #phaseFrom = 0;

  /** `now`: a clock in milliseconds. `gauges` reads what has a value only at a time. */
  constructor(now: () => number, gauges: () => Gauges) {
    this.#now = now;
    this.#began = now();
    this.#gauges = gauges;
  }

  get series(): readonly Second[] {
    return this.#series;
  }

  get phases(): readonly Phase[] {
    return this.#phases;
  }

  get slowest(): readonly SlowRequest[] {
    return this.#slowest.all;
  }

  /** What was measured since the last phase ended. */
  get phase(): Tally {
    return this.#phase;
  }

  /** What was measured since the beginning. */
  get whole(): Tally {
    return this.#whole;
  }

  /** Seconds since the beginning. */
  get seconds(): number {
    return (this.#now() - this.#began) / 1000;
  }

  count(outcome: keyof Counting, times = 1): void {
    this.roll();
    this.#second.counts[outcome] += times;
    this.#phase.counts[outcome] += times;
    this.#whole.counts[outcome] += times;
  }

  latency(kind: LatencyKind, ms: number): void {
    this.roll();
    this.#second.histograms[kind].record(ms);
    this.#phase.histograms[kind].record(ms);
    this.#whole.histograms[kind].record(ms);
  }

  add(name: keyof Sums, number: number): void {
    this.roll();
    this.#second.sums[name] += number;
    this.#phase.sums[name] += number;
    this.#whole.sums[name] += number;
  }

  /**
   * A page has ended, with its latency in milliseconds. Those of refused and cut pages do not count: they would make the
   * good ones look faster. `shown` is called only for slow pages.
   */
  page(outcome: Outcome, latency: number, shown: () => Omit<SlowRequest, 'latency' | 'second'>): void {
    this.count(outcome);
    if (outcome !== 'ok' && outcome !== 'notModified') return;
    this.latency('pages', latency);
    this.add('goodPages', 1);
    this.slow(latency, shown);
  }

  /** A request may be one of the slowest. */
  slow(latency: number, shown: () => Omit<SlowRequest, 'latency' | 'second'>): void {
    if (this.#slowest.takes(latency)) this.#slowest.add({ ...shown(), latency, second: this.#series.length });
  }

  /** Closes the seconds that are over. */
  roll(): void {
    while (this.seconds >= this.#series.length + 1) this.#closeSecond();
  }

  /** Closes the last second, which is not over. */
  finish(): void {
    this.roll();
    this.#closeSecond();
  }

  /** The server's side of the last second that is over. */
  setServer(server: ServerSide): void {
    const last = this.#series.at(-1);
    if (last) last.server = server;
  }

  /** Ends a phase. The next one begins now. `step`: how a step of --find ended. */
  endPhase(
    kind: Phase['kind'],
    asked: number | null,
    step: Pick<Phase, 'held' | 'broke'> = { held: null, broke: null },
  ): Phase {
    this.roll();
    const from = this.#phaseFrom;
    const to = this.seconds;
    const seconds = Math.max(0.001, to - from);
    const part = this.#series.slice(Math.round(from));
    const { counts, sums } = this.#phase;
    const phase: Phase = {
      kind,
      from: rounded(from),
      to: rounded(to),
      asked,
      counts,
      ...step,
      ...this.#phase.quantiles(),
      pagesPerSecond: rounded(sums.goodPages / seconds),
      rowsPerSecond: Math.round(sums.rows / seconds),
      bytesPerSecond: Math.round(sums.bytes / seconds),
      client: meanOfClient(part.map(({ client }) => client)),
      server: meanOfServer(part.map(({ server }) => server).filter((server) => server !== null)),
    };
    this.#phases.push(phase);
    this.#phase = new Tally();
    this.#phaseFrom = to;
    return phase;
  }

  #closeSecond(): void {
    this.#series.push({
      second: this.#series.length,
      ...this.#second.counts,
      ...this.#second.sums,
      ...this.#second.quantiles(),
      ...this.#gauges(),
      server: null,
    });
    this.#second.reset();
  }
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
