import { join } from 'node:path';
import { missingLibraries, runPython } from '../python.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** All items in a data frame of Python: over HTTP, or straight from MongoDB with pymongoarrow. Counts rows. */
export interface FramesScenario {
  readonly kind: 'frames';
  readonly from: 'ndjson' | 'csv' | 'arrow' | 'pymongoarrow';
  readonly into: 'polars' | 'pandas';
}

/** The output of frames.py. */
interface Read {
  readonly seconds: number;
  readonly cpu: number;
  readonly rows: number;
  readonly stock: number;
}

const PROGRAM = join(import.meta.dirname, '../frames.py');

export const frames: Kind<FramesScenario> = {
  missing({ from, into }) {
    const libraries = [into, 'pyarrow', ...(from === 'pymongoarrow' ? [from] : [])];
    return missingLibraries(libraries);
  },

  async check(job) {
    const { rows, stock } = await read(job);
    return { text: `${rows} rows, stock ${stock}`, rows, bytes: 0 };
  },

  async measure(job, proof) {
    const endUsage = startUsage(pidsOf(job));
    const { seconds, cpu, rows, stock } = await read(job);
    const usage = { ...endUsage(), client: cpu };
    if (`${rows} rows, stock ${stock}` !== proof.text)
      throw new Error(`${rows} rows with a stock of ${stock} were read, not ${proof.text}`);
    return { seconds, count: rows, usage };
  },
};

async function read(job: Job<FramesScenario>): Promise<Read> {
  const { from, into } = job.scenario;
  const source =
    from === 'pymongoarrow'
      ? (job.ground.environment.MONGODB_URI ?? '')
      : `${urlOf(job)}/items/stream?format=${from}`;
  return (await runPython(PROGRAM, [source, from, into])) as Read;
}
