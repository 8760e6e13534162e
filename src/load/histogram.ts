import { build, type Histogram as Hdr } from 'hdr-histogram-js';
import type { Latencies, Quantiles } from './figures.ts';

/** Ticks of 0.1 ms. */
const TICKS_PER_MS = 10;
/** The longest latency that is told apart: an hour. */
const MOST_TICKS = 36_000_000;
/** Latencies are told apart to a thousandth of their length. */
const DIGITS = 3;

const NOTHING: Quantiles = { p50: null, p90: null, p99: null, p999: null, max: null };

/** A histogram of latencies in milliseconds, to 0.1 ms or a thousandth. Its memory does not grow. */
export class LatencyHistogram {
  readonly #hdr: Hdr = build({
    bitBucketSize: 32,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: MOST_TICKS,
    numberOfSignificantValueDigits: DIGITS,
    useWebAssembly: false,
  });
  #count = 0;

  record(ms: number): void {
    this.#count++;
    this.#hdr.recordValue(Math.min(MOST_TICKS, Math.max(1, Math.round(ms * TICKS_PER_MS))));
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
    const at = (percent: number) => this.#hdr.getValueAtPercentile(percent) / TICKS_PER_MS;
    return { p50: at(50), p90: at(90), p99: at(99), p999: at(99.9), max: this.#hdr.maxValue / TICKS_PER_MS };
  }

  latencies(): Latencies {
    const ticks: number[] = [];
    const counts: number[] = [];
    if (this.#count > 0)
      for (const value of recorded(this.#hdr)) {
        ticks.push(value.tick);
        counts.push(value.count);
      }
    const mean = this.#count === 0 ? null : Math.round((this.#hdr.mean / TICKS_PER_MS) * 100) / 100;
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
