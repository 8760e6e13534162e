import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

/** The arguments with which Node runs TypeScript. */
export const TYPE_SCRIPT: readonly string[] = ['--import', import.meta.resolve('tsx')];

/** The arguments that make Node run a TypeScript program of test/support. */
export function childProgram(name: string): readonly string[] {
  return [...TYPE_SCRIPT, join(import.meta.dirname, '..', name)];
}

/** Starts a program of test/support in a process of its own, which is killed after the test. */
export function startProgram(t: TestContext, name: string, ...args: (string | number)[]) {
  const child = spawn(process.execPath, [...childProgram(name), ...args.map(String)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit') as Promise<[code: number | null, signal: string | null]>;
  return { child, ended, lines: () => createInterface({ input: child.stdout }) };
}
