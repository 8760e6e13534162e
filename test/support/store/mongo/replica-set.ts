import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { freePorts } from '../../ports.ts';

export interface ReplicaSetOptions {
  readonly members?: number;
  /** The number of last members that confirm writes but are hidden from clients. */
  readonly hidden?: number;
  readonly cacheGB?: number;
  /** Further command line arguments for every member. */
  readonly arguments?: readonly string[];
  /**
   * How long members wait for a lost primary before they elect another one, in milliseconds. MongoDB's
   * default is 10 s.
   */
  readonly electionMs?: number;
  /** false starts a single mongod without a replica set. */
  readonly replicated?: boolean;
}

/**
 * How long a mongod may take to answer after its start, on a machine that does other work too. Milliseconds.
 */
const START_MS = 60_000;

/** One mongod: a real process on a loopback port, with a directory of its own. */
export class Member {
  readonly port: number;
  readonly directory: string;
  readonly #program: string;
  readonly #arguments: readonly string[];
  readonly #log: string;
  #process: ChildProcess | null = null;

  constructor(program: string, port: number, directory: string, more: readonly string[]) {
    this.port = port;
    this.directory = directory;
    this.#program = program;
    this.#log = `${directory}.log`;
    this.#arguments = ['--dbpath', directory, '--port', String(port), '--logpath', this.#log, ...more];
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Starts it, or restarts it. Resolves when it answers. */
  async start(): Promise<void> {
    const child = spawn(this.#program, this.#arguments, { stdio: 'ignore' });
    child.unref(); // a process that forgets to stop it can still end, and kills it then
    this.#process = child;
    const ended = once(child, 'exit').then(async () => {
      throw new Error(`mongod ended: ${(await readFile(this.#log, 'utf8')).slice(-2_000)}`);
    });
    await Promise.race([ended, this.admin(() => Promise.resolve())]);
    ended.catch(() => undefined); // from here on, tests end it deliberately
  }

  /** Sends SIGKILL. Resolves when the process has ended. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  /** Sends SIGKILL without waiting. It is for the exit of this process. */
  killNow(): void {
    this.#process?.kill('SIGKILL');
  }

  /** Makes it hang: connections stay open, but nothing is answered. */
  pause(): void {
    const { pid } = this.#process ?? {};
    if (pid === undefined || !this.#process?.kill('SIGSTOP')) return;
    // On a busy machine the process stops milliseconds later and answers until then. /proc exists only on
    // Linux.
    const stat = `/proc/${pid}/stat`;
    while (existsSync(stat) && !readFileSync(stat, 'utf8').includes(') T '));
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Calls `work` with a client that is connected to this member alone. */
  async admin<T>(work: (client: MongoClient) => Promise<T>): Promise<T> {
    const uri = `mongodb://${this.host}/?directConnection=true`;
    const client = await new MongoClient(uri, { serverSelectionTimeoutMS: START_MS }).connect();
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  }
}

/** Real mongods that form a replica set, in a temporary directory. */
export class ReplicaSet {
  readonly members: readonly Member[];
  readonly uri: string;
  readonly #directory: string;
  readonly #atExit = () => this.#removeNow();

  private constructor(members: readonly Member[], directory: string, replicated: boolean) {
    this.members = members;
    this.#directory = directory;
    const hosts = members.map(({ host }) => host).join(',');
    this.uri = `mongodb://${hosts}/${replicated ? '?replicaSet=rs0' : '?directConnection=true'}`;
    process.once('exit', this.#atExit);
  }

  /** Starts the members and resolves when one of them is primary. */
  static async start(program: string, options: ReplicaSetOptions = {}): Promise<ReplicaSet> {
    const { members: count = 1, cacheGB = 0.5, replicated = true } = options;
    const directory = await mkdtemp(join(tmpdir(), 'sluice-mongod-'));
    const common = ['--bind_ip', '127.0.0.1', '--nounixsocket', '--wiredTigerCacheSizeGB', String(cacheGB)];
    common.push('--setParameter', 'diagnosticDataCollectionEnabled=false');
    if (replicated) common.push('--replSet', 'rs0', '--oplogSize', '64');
    const ports = await freePorts(count);
    const members = await Promise.all(
      ports.map(async (port) => {
        const path = join(directory, String(port));
        await mkdir(path);
        return new Member(program, port, path, [...common, ...(options.arguments ?? [])]);
      }),
    );
    const set = new ReplicaSet(members, directory, replicated);
    try {
      await Promise.all(members.map((member) => member.start()));
      if (replicated) await set.#initiate(options);
      return set;
    } catch (error) {
      await set.stop();
      throw error;
    }
  }

  /** The member that is primary now. */
  async primary(): Promise<Member> {
    const me = await this.#onPrimary(
      async (client) => (await client.db('admin').command({ hello: 1 })).me as string,
    );
    const member = this.members.find(({ host }) => host === me);
    if (!member) throw new Error(`the primary ${me} is no member`);
    return member;
  }

  async stop(): Promise<void> {
    process.off('exit', this.#atExit);
    await Promise.all(this.members.map((member) => member.kill()));
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #initiate({
    electionMs: electionTimeoutMillis = 10_000,
    hidden = 0,
  }: ReplicaSetOptions): Promise<void> {
    const seen = this.members.length - hidden;
    const members = this.members.map(({ host }, _id) =>
      _id < seen ? { _id, host } : { _id, host, hidden: true, priority: 0 },
    );
    const replSetInitiate = { _id: 'rs0', members, settings: { electionTimeoutMillis } };
    await this.members[0]?.admin((client) => client.db('admin').command({ replSetInitiate }));
    await this.#onPrimary((client) => client.db('admin').command({ ping: 1 }));
  }

  /** Calls `work` with a client. The driver waits for a primary by itself. */
  async #onPrimary<T>(work: (client: MongoClient) => Promise<T>): Promise<T> {
    const client = await new MongoClient(this.uri, { serverSelectionTimeoutMS: START_MS }).connect();
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  }

  #removeNow(): void {
    for (const member of this.members) member.killNow();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
