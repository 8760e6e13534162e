import { readFileSync, writeFileSync } from 'node:fs';

/**
 * The cost of a round. CPU in seconds, user and system. Memory in bytes. 0 where /proc does not provide it.
 */
export interface Usage {
  readonly server: number;
  readonly client: number;
  readonly mongod: number;
  /** The server's largest resident memory during the round. */
  readonly rssPeak: number;
}

/** The ids of the measured processes. null when there is none, or when it runs on another machine. */
export interface Pids {
  readonly server: number;
  readonly mongod: number | null;
}

/** Linux counts 100 ticks per second. */
const TICKS = 100;

/** Starts a measurement. The returned function ends it. This process is the client. */
export function startUsage(pids: Pids): () => Usage {
  resetPeak(pids.server);
  const server = cpuSeconds(pids.server);
  const mongod = cpuSeconds(pids.mongod);
  const client = process.cpuUsage();
  return () => {
    const used = process.cpuUsage(client);
    return {
      server: cpuSeconds(pids.server) - server,
      client: (used.user + used.system) / 1e6,
      mongod: cpuSeconds(pids.mongod) - mongod,
      rssPeak: memoryOf(pids.server, 'VmHWM'),
    };
  };
}

/** The cost of several rounds together. */
export function sumOfUsages(usages: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number) => usages.reduce((total, usage) => total + of(usage), 0);
  return {
    server: sum(({ server }) => server),
    client: sum(({ client }) => client),
    mongod: sum(({ mongod }) => mongod),
    rssPeak: Math.max(...usages.map(({ rssPeak }) => rssPeak)),
  };
}

/**
 * The memory of a process in bytes. RssAnon leaves out pages of mapped files, which are the kernel's cache.
 */
export function memoryOf(pid: number, field: 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const kibibytes = new RegExp(`${field}:\\s+(\\d+) kB`).exec(proc(pid, 'status'))?.[1];
  return Number(kibibytes ?? 0) * 1024;
}

/** The CPU seconds used so far by a process and the processes it started, user and system. */
export function cpuSeconds(pid: number | null): number {
  if (pid === null) return 0;
  const fields = proc(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  const own = (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS;
  const children = proc(pid, `task/${pid}/children`).split(' ').filter(Boolean);
  return children.reduce((sum, child) => sum + cpuSeconds(Number(child)), own);
}

/** The CPU seconds of the processes that this one has started and that have ended, user and system. */
export function childrenSeconds(): number {
  const fields = proc(process.pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) / TICKS;
}

/** Resets VmHWM (proc(5), clear_refs). */
function resetPeak(pid: number): void {
  if (process.platform === 'linux') writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function proc(pid: number, file: string): string {
  return process.platform === 'linux' ? readFileSync(`/proc/${pid}/${file}`, 'utf8') : '';
}
