import { noCounts, type Counting } from './counts.ts';
import { LatencyHistogram } from './histogram.ts';
import type { LatencyKind } from './result.ts';

/** What adds up beside the outcomes. */
export interface Sums {
  goodPages: number;
  /** Rows and bytes of pullers. */
  rows: number;
  bytes: number;
  /** Lines and heartbeats of followers. */
  lines: number;
  heartbeats: number;
}

function noSums(): Sums {
  return { goodPages: 0, rows: 0, bytes: 0, lines: 0, heartbeats: 0 };
}

/** What was counted and timed in a part of a run. */
export class Tally {
  counts: Counting = noCounts();
  sums: Sums = noSums();
  readonly histograms: Readonly<Record<LatencyKind, LatencyHistogram>> = {
    pages: new LatencyHistogram(),
    firstByte: new LatencyHistogram(),
    delay: new LatencyHistogram(),
  };

  quantiles() {
    const { pages, firstByte, delay } = this.histograms;
    return { pages: pages.quantiles(), firstByte: firstByte.quantiles(), delay: delay.quantiles() };
  }

  reset(): void {
    this.counts = noCounts();
    this.sums = noSums();
    for (const histogram of Object.values(this.histograms)) histogram.reset();
  }
}
