import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';

/** A server or limit under measurement, as a child process of its own. */
export interface Measured {
  readonly pid: number;
  /** What stood in the line that said it listens. */
  readonly announced: string;
  /** Sends a line and resolves with the line that answers it. */
  ask(line: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a TypeScript file of this project; resolves once a line of its output holds "listening". */
export async function startProcess(
  file: string,
  args: readonly string[],
  environment: Record<string, string>,
): Promise<Measured> {
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const announced = await nextLine(child, lines, (line) => line.includes('listening'));
  return {
    pid: child.pid ?? 0,
    announced,
    ask: (line) => {
      const answer = nextLine(child, lines, () => true);
      child.stdin.write(`${line}\n`);
      return answer;
    },
    stop: async () => {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Runs a TypeScript file to its end; rejects unless it exits with 0. */
export async function runToEnd(
  file: string,
  args: readonly string[],
  environment: Record<string, string>,
): Promise<void> {
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${file} exited with ${String(code)}`);
}

async function nextLine(
  child: ChildProcess,
  lines: Interface,
  wanted: (line: string) => boolean,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null) =>
      reject(new Error(`${child.spawnargs.join(' ')} exited with ${String(code)}`));
    child.once('exit', gone);
    const onLine = (line: string) => {
      if (!wanted(line)) return;
      lines.off('line', onLine);
      child.off('exit', gone);
      resolve(line);
    };
    lines.on('line', onLine);
  });
}

/** CPU seconds a process has used so far, user and system; 0 where /proc is missing. Linux counts 100 ticks a second. */
export function cpuSeconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch (error) {
    if (process.platform !== 'linux') return 0;
    throw error;
  }
}
