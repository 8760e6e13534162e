import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { freePort } from '../ports.ts';
import { program } from '../process/programs.ts';

/** The redis-server of one test: a real process on a loopback port, without files on disk. */
export class TestRedis {
  readonly port: number;
  readonly #arguments: readonly string[];
  #process: ChildProcess | null = null;

  constructor(port: number, more: readonly string[]) {
    this.port = port;
    this.#arguments = [...`--port ${port} --bind 127.0.0.1 --appendonly no --save`.split(' '), '', ...more];
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it, or restarts it, without data. Resolves when it accepts connections. */
  async start(): Promise<void> {
    const child = spawn('redis-server', this.#arguments, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#process = child;
    const said: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      said.push(line);
      if (line.includes('Ready to accept connections')) {
        child.stdout.resume(); // a full pipe would block it
        return;
      }
    }
    throw new Error(`redis-server ended: ${said.slice(-5).join('\n')}`);
  }

  /** Sends SIGKILL. Resolves when the process has ended. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  /** Makes it hang: connections stay open, but nothing is answered. */
  pause(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }
}

/**
 * Starts a redis-server that ends with the test. When there is none, resolves with null and skips the test
 * with the reason. With REQUIRE_ALL=1 that is an error. `more`: further command line arguments.
 */
export async function testRedis(t: TestContext, more: readonly string[] = []): Promise<TestRedis | null> {
  if (program(t, ['redis-server'], ['--version']) === null) return null;
  const redis = new TestRedis(await freePort(), more);
  t.after(() => redis.kill());
  await redis.start();
  return redis;
}
