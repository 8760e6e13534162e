import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { childProgram } from '../../process/child-program.ts';

const PROGRAM = 'editions/model/edition-server.ts';
const RETRY_MS = 50;

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  /** Null: it does not listen yet. */
  url: string | null;
}

interface ServerAnswer {
  readonly body: Buffer;
  /** Of the process: one that is started again has another. */
  readonly url: string;
}

/** Servers on one store, each a process of its own, which are killed and started again. */
export class EditionServers {
  /** Lines of their logs that report a fault. */
  readonly faults: string[] = [];
  readonly #settings: Readonly<Record<string, string>>;
  readonly #all: Running[] = [];

  constructor(t: TestContext, settings: Readonly<Record<string, string>>) {
    this.#settings = settings;
    t.after(() => this.killAll());
  }

  /** Starts the server of a number, which is not running. Resolves when it listens. */
  async start(n: number): Promise<void> {
    const child = spawn(process.execPath, [...childProgram(PROGRAM)], {
      env: { ...process.env, ...this.#settings },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    createInterface({ input: child.stderr }).on('line', (line) => this.faults.push(line));
    const running: Running = { child, ended: once(child, 'exit'), url: null };
    this.#all[n] = running;
    const lines = createInterface({ input: child.stdout });
    await Promise.race([once(lines, 'line').then(([line]) => (running.url = String(line))), running.ended]);
    if (running.url === null) throw new Error('a server ended before it listened');
  }

  async kill(n: number): Promise<void> {
    const running = this.#all[n];
    if (!running) return;
    running.url = null;
    running.child.kill('SIGKILL');
    await running.ended;
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#all.map((_, n) => this.kill(n)));
  }

  /** What any server gives for a path, and its URL. Null: none listens, or it cannot say now. Rejects with a status of 4xx. */
  async get(path: string, method = 'GET'): Promise<ServerAnswer | null> {
    for (const url of this.urls()) {
      try {
        const answer = await fetch(url + path, { method });
        const body = Buffer.from(await answer.arrayBuffer());
        if (answer.ok) return { body, url };
        if (answer.status < 500)
          throw new RefusedError(`${method} ${path}: ${answer.status} ${body.toString()}`);
      } catch (error) {
        if (error instanceof RefusedError) throw error; // else it was killed
      }
    }
    return null;
  }

  /** Asks until a server takes it. */
  async insist(path: string, method = 'GET'): Promise<ServerAnswer> {
    for (;;) {
      const answer = await this.get(path, method);
      if (answer) return answer;
      await pause(RETRY_MS);
    }
  }

  /** The servers that listen, another one first each time. */
  urls(): string[] {
    const urls = this.#all.flatMap(({ url }) => url ?? []);
    this.#turn++;
    return [...urls.slice(this.#turn % 2), ...urls.slice(0, this.#turn % 2)];
  }

  #turn = 0;
}

class RefusedError extends Error {}
