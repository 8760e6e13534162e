import type { Asked, Drained } from '../limits/asked.ts';
import { readStream, verifyArrow, verifyStream, type Encoding } from '../reader.ts';
import type { Round } from '../results.ts';
import { startUsage, sumOfUsages } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind, type Proof, type Subject } from './kind.ts';

/** Whole streams, one or several at the same time. Counts rows. */
export interface StreamScenario {
  readonly kind: 'stream';
  readonly path: string;
  readonly encoding: Encoding;
  /** Without it, JSON or lines of JSON. */
  readonly form?: 'arrow';
  /** The number of concurrent streams. */
  readonly streams: number;
  /** Whether each round is the first of a new server. */
  readonly isFresh?: boolean;
  /** The path of a stream of the same rows as lines, with which each round is compared. */
  readonly lines?: string;
  /** The equivalent request to a limit that is not a server. */
  readonly asked?: Asked;
}

/**
 * The largest relative difference in bytes that are compressed, or in record batches. They depend on how the rows were
 * grouped in time.
 */
const GROUPED_TOLERANCE = 0.1;

export const stream: Kind<StreamScenario> = {
  async check(job) {
    const { path, encoding, form } = job.scenario;
    if (job.subject.process.url === null) return null;
    const url = urlOf(job) + path;
    const { rows, bytes, md5 } = await (form === 'arrow' ? verifyArrow(url) : verifyStream(url, encoding));
    if (rows === 0) throw new Error(`${job.subject.name} gave no rows for ${path}`);
    return { text: `${rows} rows, ${bytes} bytes, md5 ${md5}`, rows, bytes };
  },

  needsWarmth: ({ isFresh = false }) => !isFresh,

  async measure(job, proof) {
    if (job.subject.process.url === null) return drain(job, proof);
    const { isFresh = false, lines } = job.scenario;
    if (lines !== undefined) return readBeside(job, proof, lines);
    return isFresh ? withFresh(job.subject, (subject) => read({ ...job, subject }, proof)) : read(job, proof);
  },
};

async function read(job: Job<StreamScenario>, proof: Proof): Promise<Round> {
  const { path, encoding, form, streams } = job.scenario;
  const url = urlOf(job) + path;
  const endUsage = startUsage(pidsOf(job));
  const started = performance.now();
  const readings = await Promise.all(Array.from({ length: streams }, () => readStream(url, encoding)));
  const seconds = (performance.now() - started) / 1000;
  const usage = endUsage();
  const sizes = readings.map(({ bytes }) => bytes);
  if (encoding === 'identity' && !form) assertAll(sizes, (size) => size === proof.bytes, job, proof.bytes);
  else {
    const [first = 0] = sizes;
    assertAll(sizes, (size) => Math.abs(size / first - 1) < GROUPED_TOLERANCE, job, first);
  }
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const firstByte = Math.max(...readings.map(({ firstByteSeconds }) => firstByteSeconds));
  return {
    seconds,
    count: proof.rows * streams,
    usage,
    figures: { wireMB: total / 1e6, ratio: (proof.bytes * streams) / total, firstByteMs: firstByte * 1000 },
  };
}

/** The lines that subjects have sent. */
const linesOf = new WeakMap<Subject, Proof>();

/** Reads both by turns for the seconds of a round, so that a change of the machine's speed affects both alike. */
async function readBeside(job: Job<StreamScenario>, proof: Proof, path: string): Promise<Round> {
  const { encoding, streams } = job.scenario;
  const plain = { ...job, scenario: { kind: 'stream', path, encoding, streams } as const };
  const plainProof = await (linesOf.get(job.subject) ?? stream.check(plain));
  if (plainProof?.rows !== proof.rows) throw new Error(`${path} has other rows than ${job.scenario.path}`);
  linesOf.set(job.subject, plainProof);
  const own: Round[] = [];
  const others: Round[] = [];
  do {
    others.push(await read(plain, plainProof));
    own.push(await read(job, proof));
  } while (secondsOf(own) < job.effort.seconds);
  const usage = sumOfUsages(own.map((round) => round.usage));
  return {
    seconds: secondsOf(own),
    count: proof.rows * streams * own.length,
    usage,
    figures: {
      ...own[0]?.figures,
      ofLines: secondsOf(others) / secondsOf(own),
      cpuOfLines: usage.server / sumOfUsages(others.map((round) => round.usage)).server,
    },
  };
}

function secondsOf(rounds: readonly Round[]): number {
  return rounds.reduce((sum, { seconds }) => sum + seconds, 0);
}

function assertAll(
  sizes: readonly number[],
  fits: (size: number) => boolean,
  { subject, scenario }: Job<StreamScenario>,
  expected: number,
): void {
  const wrong = sizes.find((size) => !fits(size));
  if (wrong !== undefined)
    throw new Error(`${subject.name}, ${scenario.path}: ${wrong} bytes came where ${expected} were expected`);
}

async function drain(job: Job<StreamScenario>, proof: Proof): Promise<Round> {
  const { asked } = job.scenario;
  const { process, name } = job.subject;
  const endUsage = startUsage(pidsOf(job));
  const { rows, bytes, seconds } = JSON.parse(await process.ask(JSON.stringify(asked))) as Drained;
  const usage = endUsage();
  if (rows !== null && rows !== proof.rows) throw new Error(`${name} read ${rows} rows, not ${proof.rows}`);
  if (rows === null && bytes < proof.rows) throw new Error(`${name} read no more than ${bytes} bytes`);
  return { seconds, count: proof.rows, usage };
}
