import { join } from 'node:path';
import { missingLibraries, runPython } from '../python.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** All items out of a table of ClickHouse (chdb, one thread) into a pipe. The subject only fills the table. Counts rows. */
export interface ClickhouseScenario {
  readonly kind: 'clickhouse';
  readonly form: 'ndjson' | 'arrow';
}

/** The output of clickhouse.py. */
interface Written {
  readonly seconds: number;
  readonly cpu: number;
  readonly rows: number;
  readonly bytes: number;
  readonly same: boolean;
}

const PROGRAM = join(import.meta.dirname, '../clickhouse.py');

export const clickhouse: Kind<ClickhouseScenario> = {
  missing: () => missingLibraries(['chdb', 'pyarrow']),

  async check(job) {
    const { rows, bytes } = await write(job);
    return { text: `${rows} rows, ${bytes} bytes`, rows, bytes };
  },

  async measure(job, proof) {
    const endUsage = startUsage(pidsOf(job));
    const { seconds, cpu, rows, bytes } = await write(job);
    // The subject works only while the table is filled, which is not timed.
    const usage = { ...endUsage(), server: 0, client: cpu };
    if (`${rows} rows, ${bytes} bytes` !== proof.text)
      throw new Error(`${rows} rows in ${bytes} bytes were written, not ${proof.text}`);
    return { seconds, count: rows, usage };
  },
};

async function write(job: Job<ClickhouseScenario>): Promise<Written> {
  const { form } = job.scenario;
  const written = (await runPython(PROGRAM, [`${urlOf(job)}/items/stream`, form])) as Written;
  if (written.rows !== job.ground.rows)
    throw new Error(`${written.rows} rows were written of ${job.ground.rows}`);
  if (form === 'ndjson' && !written.same)
    throw new Error('the lines of ClickHouse differ from those of sluice');
  return written;
}
