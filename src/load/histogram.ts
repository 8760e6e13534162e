import { build, type Histogram as Hdr } from 'hdr-histogram-js';
import type { Latencies, Quantiles } from './figures.ts';

/** Ticks of 0.1 ms. */
const TICKS_PER_MS = 10;
/** The longest latency that is counted by itself: an hour. */
const MOST_MS = 3_600_000;
/** Latencies are distinguished to a thousandth of their length. */
const DIGITS = 3;

const NOTHING: Quantiles = { p50: null, p90: null, p99: null, p999: null, max: null };

/** A histogram of latencies in milliseconds, to a tick or a thousandth. Its memory does not grow. */
export class LatencyHistogram {
  readonly #ticksPerMs: number;
  readonly #hdr: Hdr;
  #count = 0;

  /** `ticksPerMs`: a tick is 0.1 ms by default. */
  constructor(ticksPerMs = TICKS_PER_MS) {
    this.#ticksPerMs = ticksPerMs;
    this.#hdr = build({
      bitBucketSize: 32,
      autoResize: false,
      lowestDiscernibleValue: 1,
      highestTrackableValue: MOST_MS * ticksPerMs,
      numberOfSignificantValueDigits: DIGITS,
      useWebAssembly: false,
    });
  }

  get count(): number {
    return this.#count;
  }

  record(ms: number): void {
    this.#count++;
    this.#hdr.recordValue(Math.max(1, Math.round(Math.min(MOST_MS, ms) * this.#ticksPerMs)));
  }

  add(other: LatencyHistogram): void {
    if (other.#count === 0) return;
    this.#count += other.#count;
    this.#hdr.add(other.#hdr);
  }

  reset(): void {
    if (this.#count === 0) return;
    this.#count = 0;
    this.#hdr.reset();
  }

  quantiles(): Quantiles {
    if (this.#count === 0) return NOTHING;
    const at = (percent: number) => this.#hdr.getValueAtPercentile(percent) / this.#ticksPerMs;
    return {
      p50: at(50),
      p90: at(90),
      p99: at(99),
      p999: at(99.9),
      max: this.#hdr.maxValue / this.#ticksPerMs,
    };
  }

  latencies(): Latencies {
    const ticks: number[] = [];
    const counts: number[] = [];
    if (this.#count > 0)
      for (const value of recorded(this.#hdr)) {
        ticks.push(value.tick);
        counts.push(value.count);
      }
    const mean = this.#count === 0 ? null : Math.round((this.#hdr.mean / this.#ticksPerMs) * 100) / 100;
    return { ...this.quantiles(), count: this.#count, mean, ticks, counts };
  }
}

/** The latencies that came, in ascending order. */
function* recorded(hdr: Hdr): Generator<{ readonly tick: number; readonly count: number }> {
  const values = (
    hdr as unknown as {
      recordedValuesIterator: {
        reset(): void;
        hasNext(): boolean;
        next(): { readonly valueIteratedTo: number; readonly countAddedInThisIterationStep: number };
      };
    }
  ).recordedValuesIterator;
  values.reset();
  while (values.hasNext()) {
    const { valueIteratedTo, countAddedInThisIterationStep } = values.next();
    yield { tick: valueIteratedTo, count: countAddedInThisIterationStep };
  }
}
