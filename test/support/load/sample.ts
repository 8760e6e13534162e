import { noCounts } from '../../../src/load/counts.ts';
import type {
  ClientSide,
  Latencies,
  Phase,
  Quantiles,
  Second,
  ServerSide,
} from '../../../src/load/figures.ts';
import { LatencyHistogram } from '../../../src/load/histogram.ts';
import type { LoadResult, PullerRow, ShownOptions } from '../../../src/load/result.ts';

const SECONDS = 24;
const RAMP_SECONDS = 4;
const RATE = 500;
/** The second in which a server that stood still for two seconds goes on. */
const STALLED_AT = 14;

const CLIENT: ClientSide = { cpu: 0.5, loopDelay: 3, memory: 142e6 };
const SERVER: ServerSide = {
  cpu: 0.9,
  memory: 220e6,
  loopDelay: 4,
  store: 250,
  transcoder: 280,
  socket: 1_100,
  streams: 108,
  stalled: 0,
  inFlight: 110,
  refused429: 0,
  refused503: 0,
};

const quantiles = (p50: number, max = 10 * p50): Quantiles => ({
  p50,
  p90: 2 * p50,
  p99: 5 * p50,
  p999: max,
  max,
});

function latencies(values: readonly number[]): Latencies {
  const histogram = new LatencyHistogram();
  for (const ms of values) histogram.record(ms);
  return histogram.latencies();
}

/** Page number i of all: one in a hundred waited for the server that stood still. */
const latencyOf = (i: number) => 3 + (i % 97) / 10 + (i % 100 === 0 ? i / 5 : 0);

function second(n: number): Second {
  const asked = Math.min(RATE, (RATE / RAMP_SECONDS) * (n + 1));
  const goodPages = n === STALLED_AT - 1 ? 0 : n === STALLED_AT ? 2 * RATE : asked;
  return {
    ...noCounts(),
    second: n,
    asked,
    arrivals: asked,
    ok: goodPages,
    goodPages,
    waiting: asked - goodPages,
    pages: quantiles(3, n === STALLED_AT ? 2_003.8 : 30),
    firstByte: quantiles(5),
    delay: quantiles(100),
    rows: 400_000,
    bytes: 82e6,
    streams: 8,
    followers: 100,
    lines: 1_000,
    heartbeats: 0,
    client: CLIENT,
    server: SERVER,
  };
}

function phase(kind: Phase['kind'], from: number, to: number): Phase {
  return {
    kind,
    from,
    to,
    asked: RATE,
    pagesPerSecond: RATE,
    counts: { ...noCounts(), ok: RATE * (to - from) },
    pages: quantiles(3, 2_003.8),
    firstByte: quantiles(5),
    delay: quantiles(100),
    rowsPerSecond: 400_000,
    bytesPerSecond: 82e6,
    client: CLIENT,
    server: SERVER,
    held: null,
    broke: null,
  };
}

function puller(kind: PullerRow['kind'], rowsPerSecond: number): PullerRow {
  const rows = SECONDS * rowsPerSecond;
  return {
    kind,
    query: '/items/stream?checkpoints=true',
    whole: 20,
    rows,
    bytes: 200 * rows,
    rowsPerSecond,
    firstByte: 9.5,
    longestGap: 2_010.4,
    cutByUs: 0,
    cut: 1,
    refused: 0,
    proof: 'proved',
    provedRows: rows,
    reason: null,
  };
}

const OPTIONS: ShownOptions = {
  command: ['http://127.0.0.1:3000/', '--pages', '500/s', '--for', '20s', '--ramp', '4s'],
  model: 'open',
  pagesPerSecond: RATE,
  connections: 32,
  queries: [{ query: '/items?limit=50', share: 1 }],
  pullers: 4,
  slow: { readers: 1, bytesPerSecond: 200_000 },
  stalled: 1,
  cutsPerMinute: 5,
  followers: 100,
  write: 'http://127.0.0.1:3000/api/users',
  format: 'ndjson',
  compression: 'none',
  forSeconds: SECONDS - RAMP_SECONDS,
  rampSeconds: RAMP_SECONDS,
  find: null,
  expectRefusals: false,
};

/** The result of a load test on a server that stood still for two seconds. */
export const SAMPLE: LoadResult = {
  form: 1,
  version: '0.3.0',
  startedAt: '2026-11-25T01:20:00.000Z',
  seconds: SECONDS,
  interrupted: false,
  target: {
    url: 'http://127.0.0.1:3000/',
    version: '0.3.0',
    ready: { status: 200, reasons: [] },
    rateLimit: { requests: 60_000, windowSeconds: 60 },
    metrics: { reachable: true, reason: null },
    resources: [{ name: 'items', rows: 53_940 }],
  },
  options: OPTIONS,
  phases: [phase('ramp', 0, RAMP_SECONDS), phase('steady', RAMP_SECONDS, SECONDS)],
  series: Array.from({ length: SECONDS }, (_, n) => second(n)),
  latencies: {
    pages: latencies(Array.from({ length: 10_000 }, (_, i) => latencyOf(i))),
    firstByte: latencies([5.3, 9.5]),
    delay: latencies(Array.from({ length: 220 }, (_, i) => 80 + i / 2)),
  },
  pullers: [
    ...[45_000, 42_000, 40_000, 38_000].map((rows) => puller('full', rows)),
    ...[puller('slow', 1_000), puller('stalled', 0)],
  ],
  fairness: { slowest: 38_000, median: 41_000, fastest: 45_000, index: 0.996 },
  followers: {
    asked: 100,
    begun: 100,
    open: 100,
    cut: 0,
    refused: 0,
    lines: 22_000,
    heartbeats: 100,
    longestSilence: 2_104.2,
    writes: 220,
    failedWrites: 0,
    missed: 0,
    reached: 22_000,
  },
  slowest: Array.from({ length: 4 }, (_, n) => ({
    kind: 'page',
    latency: 2_003.8 - n,
    waited: 1_990 - n,
    second: STALLED_AT,
    query: '/items?limit=50',
    status: 200,
    requestId: `7f58f13b-8b94-42bf-84bc-f3cd89cef02${n}`,
    traceId: `0af7651916cd43dd8448eb211c80319${n}`,
  })),
  found: null,
  verdict: {
    exitCode: 1,
    reasons: ['120 answers were 429: RATE_LIMIT allows 60,000 requests in 60 s', '1 answer was "cut"'],
    clientLimits: [],
    notes: ['--for is shorter than the window of the rate limit'],
  },
};
