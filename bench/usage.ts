import { readFileSync, writeFileSync } from 'node:fs';

/** What a round cost. CPU in seconds, user and system; memory in bytes. 0 where /proc does not tell. */
export interface Usage {
  readonly server: number;
  readonly client: number;
  readonly mongod: number;
  /** The server's largest resident memory during the round. */
  readonly rssPeak: number;
}

/** Processes whose use is measured; null: there is none, or it is on another machine. */
export interface Pids {
  readonly server: number;
  readonly mongod: number | null;
}

/** Linux counts 100 ticks a second. */
const TICKS = 100;

/** Begins to measure; what is returned ends it. This process is the client. */
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

/** A process's memory in bytes; RssAnon is what it holds without pages of mapped files, which are the kernel's cache. */
export function memoryOf(pid: number, field: 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const kibibytes = new RegExp(`${field}:\\s+(\\d+) kB`).exec(proc(pid, 'status'))?.[1];
  return Number(kibibytes ?? 0) * 1024;
}

/** CPU seconds a process and those it started have used so far, user and system. */
export function cpuSeconds(pid: number | null): number {
  if (pid === null) return 0;
  const fields = proc(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  const own = (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS;
  const children = proc(pid, `task/${pid}/children`).split(' ').filter(Boolean);
  return children.reduce((sum, child) => sum + cpuSeconds(Number(child)), own);
}

/** Lets VmHWM begin anew (proc(5), clear_refs). */
function resetPeak(pid: number): void {
  if (process.platform === 'linux') writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function proc(pid: number, file: string): string {
  return process.platform === 'linux' ? readFileSync(`/proc/${pid}/${file}`, 'utf8') : '';
}
