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
  /** How much history of changes it keeps. Megabytes. */
  readonly oplogMB?: number;
  /** Further command line arguments for every member. */
  readonly arguments?: readonly string[];
  /**
   * How long members wait for a lost primary before they elect another one, in milliseconds: 10 s as MongoDB does, and
   * half a second where a single member waits for nobody.
   */
  readonly electionMs?: number;
  /** false starts a single mongod without a replica set. */
  readonly replicated?: boolean;
}

/**
 * How long a mongod may take to answer after its start, on a machine that does other work too. Milliseconds.
 */
const START_MS = 60_000;

/** Calls `work` with a client. The driver waits for a server, and for a primary where it needs one. */
async function withClient<T>(uri: string, work: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = await new MongoClient(uri, { serverSelectionTimeoutMS: START_MS }).connect();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

export type Member = ReturnType<typeof memberOf>;

/** One mongod: a real process on a loopback port, with a directory of its own. */
function memberOf(program: string, port: number, directory: string, more: readonly string[]) {
  const host = `127.0.0.1:${port}`;
  const log = `${directory}.log`;
  const args = ['--dbpath', directory, '--port', String(port), '--logpath', log, ...more];
  let child: ChildProcess | null = null;
  /** Calls `work` with a client that is connected to this member alone. */
  const admin = <T>(work: (client: MongoClient) => Promise<T>): Promise<T> =>
    withClient(`mongodb://${host}/?directConnection=true`, work);
  return {
    host,
    directory,
    admin,
    /** Starts it, or restarts it. Resolves when it answers. */
    start: async (): Promise<void> => {
      const started = spawn(program, args, { stdio: 'ignore' });
      started.unref(); // a process that forgets to stop it can still end, and kills it then
      child = started;
      const ended = once(started, 'exit').then(async () => {
        throw new Error(`mongod ended: ${(await readFile(log, 'utf8')).slice(-2_000)}`);
      });
      await Promise.race([ended, admin(() => Promise.resolve())]);
      ended.catch(() => undefined); // from here on, tests end it deliberately
    },
    /** Sends SIGKILL. Resolves when the process has ended. */
    kill: async (): Promise<void> => {
      if (child?.exitCode !== null || child.signalCode !== null) return;
      child.ref();
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
    /** Sends SIGKILL without waiting. It is for the exit of this process. */
    killNow: (): void => void child?.kill('SIGKILL'),
    /** Makes it hang: connections stay open, but nothing is answered. */
    pause: (): void => {
      if (child?.pid === undefined || !child.kill('SIGSTOP')) return;
      // On a busy machine the process stops milliseconds later and answers until then. /proc exists only on
      // Linux.
      const stat = `/proc/${child.pid}/stat`;
      while (existsSync(stat) && !readFileSync(stat, 'utf8').includes(') T '));
    },
    resume: (): void => void child?.kill('SIGCONT'),
  };
}

/** Real mongods that form a replica set, in a temporary directory. */
export interface ReplicaSet {
  readonly members: readonly Member[];
  readonly uri: string;
  /** The member that is primary now. */
  primary(): Promise<Member>;
  stop(): Promise<void>;
}

/** Starts the members and resolves when one of them is primary. */
export async function startReplicaSet(program: string, options: ReplicaSetOptions): Promise<ReplicaSet> {
  const { members: count = 1, cacheGB = 0.5, oplogMB = 64, replicated = true } = options;
  const directory = await mkdtemp(join(tmpdir(), 'sluice-mongod-'));
  const common = ['--bind_ip', '127.0.0.1', '--nounixsocket', '--wiredTigerCacheSizeGB', String(cacheGB)];
  common.push('--setParameter', 'diagnosticDataCollectionEnabled=false');
  if (replicated) common.push('--replSet', 'rs0', '--oplogSize', String(oplogMB));
  const members = await Promise.all(
    (await freePorts(count)).map(async (port) => {
      const path = join(directory, String(port));
      await mkdir(path);
      return memberOf(program, port, path, [...common, ...(options.arguments ?? [])]);
    }),
  );
  const hosts = members.map(({ host }) => host).join(',');
  const uri = `mongodb://${hosts}/${replicated ? '?replicaSet=rs0' : '?directConnection=true'}`;
  const atExit = () => {
    for (const member of members) member.killNow();
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', atExit);
  const set: ReplicaSet = {
    members,
    uri,
    primary: async () => {
      const hello = await withClient(uri, (client) => client.db('admin').command({ hello: 1 }));
      const member = members.find(({ host }) => host === hello.me);
      if (!member) throw new Error(`the primary ${String(hello.me)} is no member`);
      return member;
    },
    stop: async () => {
      process.off('exit', atExit);
      await Promise.all(members.map((member) => member.kill()));
      await rm(directory, { recursive: true, force: true });
    },
  };
  try {
    await Promise.all(members.map((member) => member.start()));
    if (replicated) await initiate(set, options);
    return set;
  } catch (error) {
    await set.stop();
    throw error;
  }
}

async function initiate({ members, uri }: ReplicaSet, options: ReplicaSetOptions): Promise<void> {
  const { electionMs: electionTimeoutMillis = members.length === 1 ? 500 : 10_000, hidden = 0 } = options;
  const seen = members.length - hidden;
  const configured = members.map(({ host }, _id) =>
    _id < seen ? { _id, host } : { _id, host, hidden: true, priority: 0 },
  );
  // A new primary would wait 10 s to learn what a member has that hangs.
  const settings = { electionTimeoutMillis, catchUpTimeoutMillis: electionTimeoutMillis };
  const replSetInitiate = { _id: 'rs0', members: configured, settings };
  await members[0]?.admin((client) => client.db('admin').command({ replSetInitiate }));
  await withClient(uri, (client) => client.db('admin').command({ ping: 1 }));
}
