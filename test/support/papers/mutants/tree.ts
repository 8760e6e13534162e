import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../../..');
/** What a copy does not have: what is large or changes, and no test of this needs. */
const LEFT_OUT: ReadonlySet<string> = new Set(['node_modules', '.git', 'data', 'dist']);

type Outcome = 'passed' | 'failed' | 'took too long';
export type Tree = Awaited<ReturnType<typeof copyTree>>;

/**
 * A copy of the checkout, in which faults are put into files of src/. The checkout itself stays as it is. The caller removes
 * the directory.
 */
export async function copyTree() {
  const root = await mkdtemp(join(tmpdir(), 'sluice-mutants-'));
  for (const name of readdirSync(ROOT))
    if (!LEFT_OUT.has(name)) cpSync(join(ROOT, name), join(root, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return {
    root,
    /** The text of a file of src/ as it is in the checkout. */
    original: (file: string) => readFileSync(join(ROOT, 'src', file), 'utf8'),
    write: (file: string, text: string) => writeFile(join(root, 'src', file), text),
    test: (name: string, limitMs: number, options: readonly string[] = []) =>
      runTest(root, name, limitMs, options),
  };
}

/** Runs a test file until its first failing test, or for this long. It gets no MongoDB. */
async function runTest(
  cwd: string,
  name: string,
  limitMs: number,
  options: readonly string[],
): Promise<Outcome> {
  const own = ['--import', 'tsx', ...options, '--test-reporter', 'tap', testFile(name)];
  const child = spawn(process.execPath, own, {
    cwd,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true, // a group of its own, which ends with the processes that the test started
    env: { ...withoutParent(), NO_MONGOD: 'not for mutants' },
  });
  const outcomes: Outcome[] = [];
  const end = (by: Outcome): void => {
    outcomes.push(by);
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  const timer = setTimeout(() => end('took too long'), limitMs);
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (/^\s*not ok (?!.*# (SKIP|TODO))/m.test(text)) end('failed');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return outcomes[0] ?? (code === 0 ? 'passed' : 'failed');
}

/** The path of a test file, from the root, by what stands before its suffix. */
function testFile(name: string): string {
  const paths = ['.test.ts', '.slow.test.ts'].map((suffix) => join('test', name + suffix));
  return paths.find((path) => existsSync(join(ROOT, path))) ?? assert.fail(`there is no test ${name}`);
}

/** The names of the files below a directory of src/, without those of these directories. */
export function sourcesIn(directory: string, without: readonly string[] = []): string[] {
  return readdirSync(join(ROOT, 'src', directory), { recursive: true, encoding: 'utf8' })
    .map((path) => join(directory, path))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
    .filter((path) => !without.some((prefix) => path.startsWith(prefix)))
    .sort();
}

/** The environment for a test that is not one of the tests of this process, nor a long one. */
function withoutParent(): NodeJS.ProcessEnv {
  const hidden = new Set(
    'NODE_TEST_CONTEXT LONG SEED TEST_MONGODB_URI MONGODB_URI MONGOD TEST_FILE_LIMIT_MS'.split(' '),
  );
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !hidden.has(name)));
}
