import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { lastLine } from '../../process/wheel.ts';

const CACHE = join(import.meta.dirname, '../../../../node_modules/.cache');
const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt');
const INSTALL_MS = 600_000;

const run = promisify(execFile);

export const READERS = ['deltalake', 'polars', 'duckdb'] as const;

/** What is read, and what must come. */
export interface ReadRequest {
  readonly uri: string;
  readonly options: Readonly<Record<string, string>>;
  /** null: the newest. */
  readonly version: number | null;
  /** The types of columns, by their names. */
  readonly types: Readonly<Record<string, string>>;
  /** A file of NDJSON with the rows. */
  readonly rows: string;
  readonly readers: readonly (typeof READERS)[number][];
}

interface ReadAnswer {
  /** How many rows each reader gave. When they are others: two that lack, and two that are too many. */
  readonly found?: Readonly<Record<string, number | readonly (readonly string[])[]>>;
  readonly fault?: string;
}

/** A process of Python with readers of Delta tables: see read.py. */
export class DeltaReaders {
  readonly #ask: (line: string) => Promise<string>;

  private constructor(ask: (line: string) => Promise<string>) {
    this.#ask = ask;
  }

  /** Resolves with null where it can't run, and has then skipped the test. */
  static async start(t: TestContext): Promise<DeltaReaders | null> {
    const python = await findLakePython(t);
    if (python === null) return null;
    const child = spawn(python, [join(import.meta.dirname, 'read.py')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    t.after(async () => {
      child.stdin.end();
      await ended;
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return new DeltaReaders(async (line) => {
      child.stdin.write(`${line}\n`);
      const answer: IteratorResult<string, unknown> = await lines.next();
      if (answer.done) throw new Error('the readers ended');
      return answer.value;
    });
  }

  async read(request: ReadRequest): Promise<ReadAnswer> {
    return JSON.parse(await this.#ask(JSON.stringify(request))) as ReadAnswer;
  }
}

/** A Python with the packages of requirements.txt. null: there is none, and the test is skipped. */
export async function findLakePython(t: Pick<TestContext, 'skip'>): Promise<string | null> {
  try {
    return await lakePython();
  } catch (error) {
    const reason = `no readers of Delta tables: ${lastLine(error)}`;
    if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`, { cause: error });
    t.skip(reason);
    return null;
  }
}

/** Installs into a folder of its own first and then renames it, since another process may be installing too. */
async function lakePython(): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(REQUIREMENTS))
    .digest('hex')
    .slice(0, 12);
  const folder = join(CACHE, `lake-${digest}`);
  const python = (at: string) => join(at, 'bin/python');
  if (existsSync(python(folder))) return python(folder);
  const making = `${folder}-${process.pid}`;
  await mkdir(CACHE, { recursive: true });
  try {
    await run('python3', ['-m', 'venv', making]);
    const pip = '-m pip install --quiet --disable-pip-version-check --retries 1 -r';
    await run(python(making), [...pip.split(' '), REQUIREMENTS], { timeout: INSTALL_MS });
    await rename(making, folder);
  } catch (error) {
    if (!existsSync(python(folder))) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return python(folder);
}
