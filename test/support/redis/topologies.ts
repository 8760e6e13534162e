import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { temporaryFolder } from '../directory.ts';
import { freePort, freePorts } from '../ports.ts';
import { redisOf, testRedis, type TestRedis } from './redis.ts';

/** How long a server may be silent before the others replace it. Milliseconds. */
const SILENCE_MS = 5_000;
const LOOK_MS = 50;
/** What all of these servers want. */
const PASSWORD = 'p@ss:word';
const LOGIN = ['--requirepass', PASSWORD, '--masterauth', PASSWORD];

/** Several servers of Redis that stand for one. */
export interface TestRedises {
  /** What REDIS_URL is to have. */
  readonly url: string;
  /** The first master that has keys of a pattern. */
  holderOf(keys: string): Promise<TestRedis>;
  /** Resolves when another server than this one has its keys. */
  replaced(former: TestRedis): Promise<void>;
}

/** Asks a server. Resolves with the lines of its answer. */
async function redisCli(port: number, ...args: readonly string[]): Promise<string> {
  return runCli('-p', String(port), ...args);
}

async function runCli(...args: readonly string[]): Promise<string> {
  const env = { ...process.env, REDISCLI_AUTH: PASSWORD };
  const { stdout } = await promisify(execFile)('redis-cli', args, { env });
  return stdout.trim();
}

/** Asks again until the answer holds. A server that does not answer yet is asked again. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds().catch(() => false))) await pause(LOOK_MS);
}

/** A Cluster of three masters, each with this number of replicas, that ends with the test. null: the test is skipped. */
export async function testCluster(t: TestContext, replicas: 0 | 1): Promise<TestRedises | null> {
  const directory = await temporaryFolder(t);
  const nodes: TestRedis[] = [];
  for (const bus of await freePorts(3 + 3 * replicas)) {
    const own = `--cluster-enabled yes --cluster-config-file nodes-${bus}.conf --cluster-port ${bus}`;
    const args =
      `${own} --cluster-node-timeout ${SILENCE_MS} --dir ${directory} --dbfilename ${bus}.rdb`.split(' ');
    const node = await testRedis(t, [...args, ...LOGIN]);
    if (node === null) return null;
    nodes.push(node);
  }
  const places = nodes.map(({ port }) => `127.0.0.1:${port}`);
  const create = ['--cluster', 'create', ...places, '--cluster-replicas', String(replicas), '--cluster-yes'];
  await runCli(...create);
  for (const { port } of nodes) await until(() => isWhole(port));
  return {
    url: `redis+cluster://:${encodeURIComponent(PASSWORD)}@${places.slice(0, 2).join()}`,
    holderOf: (keys) => holderAmong(nodes, keys),
    replaced: async (former) => {
      for (const { port } of nodes.filter((node) => node !== former))
        await until(() => replacedIn(port, former));
    },
  };
}

/** Whether a node sees a Cluster that works, and is no replica that still copies. */
async function isWhole(port: number): Promise<boolean> {
  const info = await redisCli(port, 'cluster', 'info');
  const replication = await redisCli(port, 'info', 'replication');
  return info.includes('cluster_state:ok') && !replication.includes('master_link_status:down');
}

async function holderAmong(nodes: readonly TestRedis[], keys: string): Promise<TestRedis> {
  for (const node of nodes) {
    const isMaster = (await redisCli(node.port, 'role')).startsWith('master');
    if (isMaster && (await redisCli(node.port, 'keys', keys)) !== '') return node;
  }
  throw new Error(`no master has ${keys}`);
}

async function replacedIn(port: number, former: TestRedis): Promise<boolean> {
  const lines = (await redisCli(port, 'cluster', 'nodes')).split('\n');
  const own = lines.find((line) => line.includes(`:${former.port}@`)) ?? '';
  const hasSlots = own.split(' ').length > 8;
  return !hasSlots && (await isWhole(port).catch(() => false));
}

/** A master, a replica and three Sentinels that end with the test. null: the test is skipped. */
export async function testSentinels(t: TestContext): Promise<TestRedises | null> {
  const directory = await temporaryFolder(t);
  const master = await testRedis(t, ['--dir', directory, ...LOGIN]);
  if (master === null) return null;
  const of = ['--replicaof', '127.0.0.1', String(master.port), '--dbfilename', 'replica.rdb'];
  const replica = await testRedis(t, ['--dir', directory, ...of, ...LOGIN]);
  if (replica === null) return null;
  await until(() => isWholeReplica(replica.port));
  const sentinels: TestRedis[] = [];
  for (let n = 0; n < 3; n++)
    sentinels.push(await startSentinel(t, join(directory, `${n}.conf`), master.port));
  for (const { port } of sentinels)
    await until(async () => (await redisCli(port, 'info', 'sentinel')).includes(',slaves=1,sentinels=3'));
  const now = async (): Promise<TestRedis> => {
    const [{ port: sentinel } = master] = sentinels;
    const answer = await redisCli(sentinel, 'sentinel', 'get-master-addr-by-name', 'sluice-test');
    return answer.endsWith(String(replica.port)) ? replica : master;
  };
  return {
    url: `redis+sentinel://:${encodeURIComponent(PASSWORD)}@${sentinels.map(({ port }) => `127.0.0.1:${port}`).join()}/sluice-test?sentinel_password=${encodeURIComponent(PASSWORD)}`,
    holderOf: (keys) => holderAmong([master, replica], keys),
    replaced: (former) => until(async () => (await now()) !== former),
  };
}

async function isWholeReplica(port: number): Promise<boolean> {
  return (await redisCli(port, 'info', 'replication')).includes('master_link_status:up');
}

async function startSentinel(t: TestContext, path: string, master: number): Promise<TestRedis> {
  const port = await freePort();
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `requirepass "${PASSWORD}"`,
    `sentinel monitor sluice-test 127.0.0.1 ${master} 2`,
    `sentinel down-after-milliseconds sluice-test ${SILENCE_MS}`,
    `sentinel auth-pass sluice-test "${PASSWORD}"`,
    'sentinel failover-timeout sluice-test 10000',
  ];
  await writeFile(path, `${lines.join('\n')}\n`);
  const sentinel = redisOf(port, [path, '--sentinel'], 'Sentinel ID is');
  t.after(() => sentinel.kill());
  await sentinel.start();
  return sentinel;
}
