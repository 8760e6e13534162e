/** Reads what the page needs from GET /metrics, in the text format of Prometheus. */
import { send } from './api.ts';

interface Sample {
  readonly labels: string;
  readonly value: number;
}

/** Routes whose requests stay open as long as their client wants, and the one that the page itself asks each second. */
const LEFT_OUT = /route="[^"]*(\/stream|\/changes|\/metrics)"/;

export class Metrics {
  readonly #samples: ReadonlyMap<string, readonly Sample[]>;

  constructor(samples: ReadonlyMap<string, readonly Sample[]>) {
    this.#samples = samples;
  }

  /** The sum of a metric over all its labels. */
  sum(name: string): number {
    return this.#all(name).reduce((sum, { value }) => sum + value, 0);
  }

  /** The number of finished requests, without the requests for metrics. */
  requests(): number {
    return this.#all('sluice_requests_total')
      .filter(({ labels }) => !labels.includes('route="/metrics"'))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** How many requests took at most so many seconds, ascending. Streams are left out. */
  durations(): ReadonlyMap<number, number> {
    const buckets = new Map<number, number>();
    for (const { labels, value } of this.#all('sluice_request_duration_seconds_bucket')) {
      if (LEFT_OUT.test(labels)) continue;
      const limit = /le="([^"]+)"/.exec(labels)?.[1] ?? '+Inf';
      const seconds = limit === '+Inf' ? Infinity : Number(limit);
      buckets.set(seconds, (buckets.get(seconds) ?? 0) + value);
    }
    return new Map([...buckets].sort(([one], [other]) => one - other));
  }

  #all(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? [];
  }
}

export async function readMetrics(): Promise<Metrics> {
  const response = await send('/metrics');
  if (!response.ok) throw new Error(`/metrics answered ${response.status}`);
  const samples = new Map<string, Sample[]>();
  for (const line of (await response.text()).split('\n')) {
    const [, name, labels = '', value] = /^([a-z_]+)(\{[^}]*\})? (\S+)/i.exec(line) ?? [];
    if (name === undefined) continue;
    const sample = { labels, value: Number(value) };
    samples.set(name, [...(samples.get(name) ?? []), sample]);
  }
  return new Metrics(samples);
}

/**
 * The seconds that a share of the requests between two readings took at most, as far as buckets tell. Null when there
 * were none.
 */
export function quantile(
  before: ReadonlyMap<number, number>,
  now: ReadonlyMap<number, number>,
  share: number,
): number | null {
  const counts = [...now].map(([limit, count]) => [limit, count - (before.get(limit) ?? 0)] as const);
  const all = counts.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  let [lower, below] = [0, 0];
  for (const [limit, count] of counts) {
    if (count >= all * share) {
      if (limit === Infinity) return lower;
      return lower + ((limit - lower) * (all * share - below)) / Math.max(1, count - below);
    }
    [lower, below] = [limit, count];
  }
  return lower;
}
