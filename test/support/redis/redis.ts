import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { freePort } from '../ports.ts';
import { program } from '../process/programs.ts';

/** The redis-server of one test: a real process on a loopback port, without files on disk. */
export interface TestRedis {
  readonly port: number;
  readonly url: string;
  /** Starts it again, without data. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Makes it hang: connections stay open, but nothing is answered. */
  pause(): void;
  resume(): void;
}

/**
 * Starts a redis-server that ends with the test. When there is none, resolves with null and skips the test
 * with the reason. With REQUIRE_ALL=1 that is an error. `more`: further command line arguments.
 */
export async function testRedis(t: TestContext, more: readonly string[] = []): Promise<TestRedis | null> {
  if (program(t, ['redis-server'], ['--version']) === null) return null;
  const port = await freePort();
  const args = [...`--port ${port} --bind 127.0.0.1 --appendonly no --save`.split(' '), '', ...more];
  const redis = redisOf(port, args, 'Ready to accept connections');
  t.after(() => redis.kill());
  await redis.start();
  return redis;
}

/** A redis-server with these arguments, which is started once its log has the line `ready`. */
export function redisOf(port: number, args: readonly string[], ready: string): TestRedis {
  let child: ChildProcess | null = null;
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    start: async () => {
      const started = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
      child = started;
      const said: string[] = [];
      for await (const line of createInterface({ input: started.stdout })) {
        said.push(line);
        if (line.includes(ready)) {
          started.stdout.resume(); // a full pipe would block it
          return;
        }
      }
      throw new Error(`redis-server ended: ${said.slice(-5).join('\n')}`);
    },
    kill: async () => {
      if (child?.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
  };
}
