import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { compiled } from '../compiled.ts';
import { verifyStream } from '../reader.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Kind } from './kind.ts';

/** A whole stream, read by Node's own fetch and by curl with the same coding. Counts rows. */
export interface ClientsScenario {
  readonly kind: 'clients';
  readonly path: string;
  /** What fetch asks for as Accept-Encoding. Missing: what it asks for by default. */
  readonly coding?: string;
}

/** The output of bench/fetch-client.ts. */
interface Fetched {
  readonly seconds: number;
  readonly rows: number;
  readonly chunks: number;
  readonly coding: string;
}

const CLIENT = join(import.meta.dirname, '../fetch-client.ts');
const run = promisify(execFile);

export const clients: Kind<ClientsScenario> = {
  async check(job) {
    const { rows, bytes, md5 } = await verifyStream(urlOf(job) + job.scenario.path, 'identity');
    return { text: `${rows} rows, ${bytes} bytes, md5 ${md5}`, rows, bytes };
  },

  async measure(job, proof) {
    const url = urlOf(job) + job.scenario.path;
    const client = await compiled(CLIENT);
    const endUsage = startUsage(pidsOf(job));
    const { stdout } = await run(process.execPath, [
      client,
      url,
      ...(job.scenario.coding ? [job.scenario.coding] : []),
    ]);
    const fetched = JSON.parse(stdout) as Fetched;
    const usage = endUsage();
    if (fetched.rows !== proof.rows)
      throw new Error(`fetch read ${fetched.rows} rows where ${proof.rows} were expected`);
    const curlSeconds = await curl(url, fetched.coding);
    const figures = { curlSeconds, ofCurl: fetched.seconds / curlSeconds, chunks: fetched.chunks };
    return { seconds: fetched.seconds, count: proof.rows, usage, figures };
  },
};

/** The seconds that curl takes for the same stream in the same coding. It decodes and discards the stream. */
async function curl(url: string, coding: string): Promise<number> {
  const accept = coding === '' ? [] : ['--compressed', '-H', `accept-encoding: ${coding}`];
  const { stdout } = await run('curl', ['-sf', ...accept, '-o', '/dev/null', '-w', '%{time_total}', url]);
  return Number(stdout);
}
