import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { withDatabase } from '../../test/support/store/mongo/mongod.ts';
import { itemsFile, type FileForm } from '../item-files.ts';
import type { Drained } from '../limits/asked.ts';
import { runToEnd, startProcess } from '../process.ts';
import { verifyStream } from '../reader.ts';
import type { Round } from '../results.ts';
import { childrenSeconds, startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Job, type Kind, type Proof } from './kind.ts';

/** `sluice import` of a file of items into an empty store, from its start to its end. Counts rows. */
export interface ImportsScenario {
  readonly kind: 'imports';
  readonly form: FileForm;
  /** Options of the import. */
  readonly args: readonly string[];
}

const CLI = join(import.meta.dirname, '../../dist/process/cli.js');
/** Fewer rows would measure the start of a process. */
const LEAST_ROWS = 20_000;
const STREAM = '/items/stream';

export const imports: Kind<ImportsScenario> = {
  /** The store of the ground has the same items, as far as it goes. */
  async check(job) {
    if (job.subject.process.url === null) return null;
    const { rows, bytes, md5 } = await verifyStream(urlOf(job) + STREAM, 'identity');
    return { text: md5, rows, bytes };
  },

  async measure(job, proof) {
    const rows = Math.max(LEAST_ROWS, job.ground.rows);
    if (job.subject.process.url === null) return ofLimit(job, rows);
    const file = await itemsFile(rows, job.scenario.form);
    const [environment, remove] = await emptyStore(job);
    try {
      const round = await timed(job, file, rows, environment);
      await prove(job, rows, environment, proof);
      return round;
    } finally {
      await remove();
    }
  },
};

async function timed(
  job: Job<ImportsScenario>,
  file: string,
  rows: number,
  environment: Readonly<Record<string, string>>,
): Promise<Round> {
  const cpu = childrenSeconds();
  const endUsage = startUsage(pidsOf(job));
  const started = performance.now();
  await runToEnd({ file: CLI, args: ['import', file, '--into', 'items', ...job.scenario.args], environment });
  const seconds = (performance.now() - started) / 1000;
  return { seconds, count: rows, usage: { ...endUsage(), server: childrenSeconds() - cpu } };
}

/** The imported items, as a server of their own sends them. */
async function prove(
  { subject }: Job<ImportsScenario>,
  rows: number,
  environment: Readonly<Record<string, string>>,
  proof: Proof,
): Promise<void> {
  const server = await startProcess({
    ...subject.program,
    environment: { ...withoutResources(subject.program.environment), ...environment },
  });
  try {
    const url = `${server.url ?? ''}${STREAM}`;
    const all = await verifyStream(url, 'identity');
    const same = await verifyStream(`${url}?limit=${proof.rows}`, 'identity');
    if (all.rows !== rows || same.md5 !== proof.text)
      throw new Error(`${subject.name}: ${all.rows} of ${rows} rows were imported, or others`);
  } finally {
    await server.stop();
  }
}

/** The resources of the ground are not imported. */
function withoutResources(environment: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => name !== 'RESOURCES_FILE'));
}

/** An empty store of the ground's kind, and what removes it. */
async function emptyStore({
  ground,
}: Job<ImportsScenario>): Promise<[environment: Record<string, string>, remove: () => Promise<void>]> {
  const uri = ground.environment.MONGODB_URI;
  if (uri === undefined) {
    const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-import-'));
    return [{ DATA_DIR: directory }, () => rm(directory, { recursive: true, force: true })];
  }
  const empty = withDatabase(uri, `sluice_bench_import_${process.pid}`);
  const drop = async () => {
    const client = await new MongoClient(empty).connect();
    await client.db().dropDatabase();
    await client.close();
  };
  return [{ MONGODB_URI: empty }, drop];
}

async function ofLimit(job: Job<ImportsScenario>, rows: number): Promise<Round> {
  const { process, name } = job.subject;
  const endUsage = startUsage(pidsOf(job));
  const written = JSON.parse(await process.ask(JSON.stringify({ rows }))) as Drained;
  if (written.rows !== rows) throw new Error(`${name} wrote ${String(written.rows)} of ${rows} rows`);
  return { seconds: written.seconds, count: rows, usage: endUsage() };
}
