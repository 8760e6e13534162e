import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { runToEnd } from '../process.ts';
import { verifyStream } from '../reader.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Job, type Kind, type Proof } from './kind.ts';

/** `sluice pull` of a stream into a file, including its start and its proofs. Counts rows. */
export interface PullScenario {
  readonly kind: 'pull';
  readonly path: string;
  /** The number of concurrent connections. */
  readonly parallel: number;
}

const CLI = join(import.meta.dirname, '../../dist/process/cli.js');

export const pull: Kind<PullScenario> = {
  /** Determines the bytes that the file of a pull must have. */
  async check(job) {
    const { rows, bytes, md5 } = await verifyStream(urlOf(job) + job.scenario.path, 'identity');
    return { text: md5, rows, bytes };
  },

  async measure(job, proof) {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-pull-'));
    try {
      return await into(join(folder, 'items.ndjson'), job, proof);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function into(file: string, job: Job<PullScenario>, proof: Proof) {
  const { path, parallel } = job.scenario;
  const args = ['pull', urlOf(job) + path, '-o', file, '--parallel', String(parallel)];
  const endUsage = startUsage(pidsOf(job));
  const started = performance.now();
  await runToEnd({ file: CLI, args, environment: {} });
  const seconds = (performance.now() - started) / 1000;
  const usage = endUsage();
  const hash = createHash('md5');
  await pipeline(createReadStream(file), hash);
  if (hash.digest('hex') !== proof.text) throw new Error(`${job.subject.name}: a pull made other bytes`);
  return { seconds, count: proof.rows, usage };
}
