import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { compiled } from './compiled.ts';

/** A measured server or limit, in a child process of its own. */
export interface Measured {
  readonly pid: number;
  /** The URL of a server. null for a limit, which is asked over its stdin. */
  readonly url: string | null;
  /** The line that announced the URL, parsed. */
  readonly announced: Readonly<Record<string, unknown>>;
  /** Sends a line and resolves with the line that answers it. */
  ask(line: string): Promise<string>;
  /** Resolves with the next line of its output that has a text. */
  logged(text: string): Promise<string>;
  stop(): Promise<void>;
}

export interface Program {
  /** The built program, or a TypeScript file, which is compiled first. */
  readonly file: string;
  readonly args?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const running = new Set<ChildProcess>();
// A failed bench leaves no processes behind.
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Starts a program. Resolves when a line of its output says "listening". */
export async function startProcess(program: Program): Promise<Measured> {
  const child = await start(program, ['pipe', 'pipe', 'inherit']);
  const { stdin, stdout } = child;
  if (!stdin || !stdout) throw new TypeError('started without pipes');
  const lines = createInterface({ input: stdout });
  const line = await nextLine(child, lines, (text) => text.includes('"listening"'));
  const announced = JSON.parse(line) as Record<string, unknown> & { url: string | null };
  return {
    pid: child.pid ?? 0,
    url: announced.url,
    announced,
    ask: (question) => {
      const answer = nextLine(child, lines, () => true);
      stdin.write(`${question}\n`);
      return answer;
    },
    logged: (text) => nextLine(child, lines, (each) => each.includes(text)),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Runs a program to its end. Rejects unless its exit code is 0. */
export async function runToEnd(program: Program): Promise<void> {
  const [code] = (await once(await start(program, ['ignore', 'ignore', 'inherit']), 'exit')) as [
    number | null,
  ];
  if (code !== 0) throw new Error(`${program.file} exited with ${String(code)}`);
}

async function start(
  { file, args = [], environment }: Program,
  stdio: ('pipe' | 'ignore' | 'inherit')[],
): Promise<ChildProcess> {
  const inherited = { ...process.env };
  delete inherited.MONGODB_URI; // only the program's own environment selects its store
  const child = spawn(process.execPath, [await compiled(file), ...args], {
    env: { ...inherited, NODE_ENV: 'production', ...environment },
    stdio,
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
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
