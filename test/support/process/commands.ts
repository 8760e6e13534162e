import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { cli } from './child-server.ts';

/** How a command ended, and what it wrote. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly said: string;
}

/** Runs `sluice` with these arguments to its end, as a user does. `during` gets the process once it runs. */
export async function sluice(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  during: (child: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  const child = spawn(process.execPath, [await cli(), ...args], {
    env: { ...process.env, MONGODB_URI: '', SAMPLE: 'off', LOG_LEVEL: 'error', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 200_000, // on a busy machine; a test file has 300 s
  });
  during(child);
  const [stdout, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, said };
}

/** Runs a command that must succeed. */
export async function run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const { code, said } = await sluice(args, environment);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${String(code)}: ${said}`);
}
