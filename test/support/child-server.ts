import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { testEnvironment } from './server.ts';

const CLI = join(import.meta.dirname, '../../src/cli.ts');

/** The server as users start it: a process of its own. */
export interface ChildServer {
  readonly url: URL;
  readonly pid: number;
  /** Resident memory in bytes, without pages of mapped files, which are the kernel's cache; 0 where /proc is missing. */
  rss(): number;
}

/** `sluice serve` with these settings; ended after the test. Rejects when it ends before it listens. */
export async function childServer(t: TestContext, environment: Record<string, string>): Promise<ChildServer> {
  const settings = await testEnvironment(t, { LOG_LEVEL: 'info', ...environment });
  const child = spawn(process.execPath, ['--import', 'tsx', CLI, 'serve'], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill();
    await gone;
  });
  const pid = child.pid ?? 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string };
    if (msg !== 'listening' || url === undefined) continue;
    child.stdout.resume();
    return { url: new URL(url), pid, rss: () => rssOf(pid) };
  }
  throw new Error('the server ended before it listened');
}

/** Runs `sluice import` with these settings to its end. */
export async function importItems(
  args: readonly string[],
  environment: Record<string, string>,
): Promise<void> {
  const child = spawn(process.execPath, ['--import', 'tsx', CLI, 'import', ...args], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`import ended with ${String(code)}`);
}

function rssOf(pid: number): number {
  if (process.platform !== 'linux') return 0;
  const kib = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}
