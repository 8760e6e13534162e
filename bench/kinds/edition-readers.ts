import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import type { ChunkEntry, EditionHead } from '../../src/base/edition/head.ts';
import { filesOfIndex } from '../../src/base/edition/index-tree.ts';
import { freePorts } from '../../test/support/ports.ts';
import { cpuSeconds, startUsage } from '../usage.ts';
import { editions, withEditions, type EditionsRun } from './editions.ts';
import { pidsOf, type Kind } from './kind.ts';

/** Readers of all items at once: of an edition behind the cache of nginx, and of as many streams. Counts readers. */
export interface EditionReadersScenario {
  readonly kind: 'edition-readers';
  readonly readers: number;
}

const SAMPLE = join(import.meta.dirname, '../../docs/ops/nginx-editions.conf');
const NGINX = '/usr/sbin/nginx';

export const editionReaders: Kind<EditionReadersScenario> = {
  missing: () => Promise.resolve(isThere() ? null : 'there is no nginx'),
  check: ({ scenario, ...job }) =>
    editions.check({ ...job, scenario: { ...scenario, kind: 'editions', changes: 0 } }),

  measure: (job) =>
    withEditions(job, async (run) => {
      const readers = Math.ceil(job.scenario.readers * job.effort.share);
      const head = await run.newest();
      const chunks = await chunksOf(run, head);
      const { pid } = run.server;
      const agent = new Agent({ keepAlive: true });
      const nginx = await startNginx(run);
      try {
        const before = cpuSeconds(pid);
        await all(readers, async () => {
          const { length } = await bodyOf(`${run.url}/stream`, agent);
          if (length !== head.bytes) throw new Error('a stream has other bytes than the edition');
        });
        const streamsCpu = cpuSeconds(pid) - before;
        const endUsage = startUsage({ ...pidsOf(job), server: pid });
        const started = performance.now();
        const { pathname } = new URL(run.url);
        await all(readers, (n) => readEdition(`${nginx.url}${pathname}`, chunks, agent, n === 0));
        const seconds = (performance.now() - started) / 1000;
        const usage = endUsage();
        const upstreamReads = await nginx.upstreamReads();
        if (upstreamReads > chunks.length + 1) throw new Error('a file was read twice from the server');
        const figures = { streamsCpu, editionsCpu: usage.server, upstreamReads, files: chunks.length + 1 };
        return { seconds, count: readers, usage, figures };
      } finally {
        agent.destroy();
        await nginx.stop();
      }
    }),
};

function isThere(): boolean {
  try {
    execFileSync(NGINX, ['-v'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function chunksOf({ url }: EditionsRun, head: EditionHead): Promise<readonly ChunkEntry[]> {
  const { chunks } = await filesOfIndex(head.index, async (name) => {
    const answer = await fetch(`${url}/chunks/${name}.index.json`);
    return new Uint8Array(await answer.arrayBuffer());
  });
  return chunks;
}

function all(count: number, work: (n: number) => Promise<void>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, (_, n) => work(n)));
}

/** Reads the head and all chunks. `proves`: also that each is its name. */
async function readEdition(
  url: string,
  chunks: readonly ChunkEntry[],
  agent: Agent,
  proves: boolean,
): Promise<void> {
  await bodyOf(`${url}/edition`, agent);
  for (const { name, sizes } of chunks) {
    const pieces: Buffer[] = [];
    const { length } = await bodyOf(`${url}/chunks/${name}.ndjson.gz`, agent, proves ? pieces : null);
    if (length !== sizes['ndjson.gz']) throw new Error(`a chunk of ${length} bytes`);
    if (!proves) continue;
    const found = createHash('sha256')
      .update(gunzipSync(Buffer.concat(pieces)))
      .digest('hex');
    if (found !== name) throw new Error('a chunk is not its name');
  }
}

/** The length of a body, which is kept in `pieces` if there are any. */
async function bodyOf(url: string, agent: Agent, pieces: Buffer[] | null = null) {
  const [answer] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  let length = 0;
  answer.on('data', (piece: Buffer) => {
    length += piece.length;
    pieces?.push(piece);
  });
  await once(answer, 'end');
  if (answer.statusCode !== 200) throw new Error(`${url} was answered ${answer.statusCode}`);
  return { length };
}

/** nginx with the sample of the documents, as a cache before the server. */
async function startNginx({ url, folder }: EditionsRun) {
  const [alone = 0, cache = 0] = await freePorts(2);
  const sample = (await readFile(SAMPLE, 'utf8'))
    .replace('8080', `127.0.0.1:${alone}`)
    .replace('8081', `127.0.0.1:${cache}`)
    .replace('/var/lib/sluice/editions', join(folder, 'www'))
    .replace('/var/cache/nginx/sluice', join(folder, 'cache'))
    .replaceAll('http://127.0.0.1:3000', new URL(url).origin);
  const log = join(folder, 'access.log');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr emerg; ${user} events { worker_connections 8192; }
http { log_format cache $upstream_cache_status; access_log ${log} cache; ${temporary.join(' ')}\n${sample}}\n`,
  );
  const child = spawn(NGINX, ['-p', folder, '-c', file], { stdio: ['ignore', 'inherit', 'inherit'] });
  const origin = `http://127.0.0.1:${cache}`;
  while (!(await fetch(origin).catch(() => null))) {
    if (child.exitCode !== null) throw new Error('nginx ended');
    await sleep(10);
  }
  return {
    url: origin,
    /** How many answers nginx did not have. */
    upstreamReads: async () =>
      (await readFile(log, 'utf8')).split('\n').filter((line) => ['MISS', 'EXPIRED'].includes(line)).length,
    stop: () => ended(child),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = once(child, 'exit');
  child.kill();
  await gone;
}
