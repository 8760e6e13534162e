import { connect } from 'node:net';
import { verifyStream } from '../reader.ts';
import type { Round } from '../results.ts';
import { memoryOf, startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** One reader of a given speed, and the server's memory during its reading. Counts megabytes read. */
export interface SlowReaderScenario {
  readonly kind: 'slow-reader';
  readonly path: string;
  /** A page requested before the measurement. */
  readonly first: string;
  readonly bytesPerSecond: number;
  /** The duration, in periods of the run's effort. */
  readonly periods: number;
}

const SAMPLE_MS = 100;

export const slowReader: Kind<SlowReaderScenario> = {
  async check(job) {
    const { rows, bytes, md5 } = await verifyStream(urlOf(job) + job.scenario.path, 'identity');
    return { text: `${rows} rows, ${bytes} bytes, md5 ${md5}`, rows, bytes };
  },

  measure(job) {
    return withFresh(job.subject, (subject) => observe({ ...job, subject }));
  },
};

async function observe(job: Job<SlowReaderScenario>): Promise<Round> {
  const { scenario, subject, effort } = job;
  await (await fetch(urlOf(job) + scenario.first)).arrayBuffer(); // excludes what the first request loads
  const memory = () => memoryOf(subject.process.pid, 'RssAnon');
  const idle = memory();
  const samples: [number, number][] = [[0, idle]];
  const endUsage = startUsage(pidsOf(job));
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const timer = setInterval(() => samples.push([elapsed(), memory()]), SAMPLE_MS);
  try {
    const url = new URL(urlOf(job) + scenario.path);
    const read = await readSlowly(url, scenario.bytesPerSecond, effort.seconds * scenario.periods);
    const peak = Math.max(...samples.map(([, bytes]) => bytes));
    return {
      seconds: elapsed(),
      count: read / 1e6,
      usage: endUsage(),
      figures: { idleMB: idle / 1e6, peakMB: peak / 1e6, overIdleMB: (peak - idle) / 1e6 },
      samples,
    };
  } finally {
    clearInterval(timer);
  }
}

/**
 * Reads for `seconds` seconds or to the end, and never more bytes than are due at the moment. Resolves with
 * the bytes read.
 */
async function readSlowly(url: URL, bytesPerSecond: number, seconds: number): Promise<number> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    let bytes = 0;
    const socket = connect({ host: url.hostname, port: Number(url.port) });
    const isDue = () => bytes < ((performance.now() - started) / 1000) * bytesPerSecond;
    const timer = setInterval(() => isDue() && socket.resume(), 10);
    const over = setTimeout(() => socket.destroy(), seconds * 1000);
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (!isDue()) socket.pause();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearInterval(timer);
      clearTimeout(over);
      resolve(bytes);
    });
    socket.write(
      `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n`,
    );
  });
}
