/** When to send requests, regardless of earlier answers: the arrivals of an open model. */
export interface Schedule {
  /** Milliseconds from the beginning to arrival `n`, the first of which is 0. Ascending. */
  at(n: number): number;
  /** Requests per second that the schedule asks for after `ms` milliseconds. */
  rateAt(ms: number): number;
}

/** `rate` arrivals per second at equal distances, after a ramp during which the rate grows from 0. */
export function steadySchedule(rate: number, rampMs = 0): Schedule {
  const perMs = rate / 1000;
  const inRamp = (perMs * rampMs) / 2;
  return {
    at: (n) => (n < inRamp ? Math.sqrt((2 * rampMs * n) / perMs) : rampMs + (n - inRamp) / perMs),
    rateAt: (ms) => (ms < rampMs ? (rate * ms) / rampMs : rate),
  };
}
