/**
 * npm test -- [--all | --slow | --long | --quick] [--summary] [WORD...] [options of node --test]
 *
 * Runs the tests below test/ on one mongod that is started before and stopped after. Without an option it runs NAME.test.ts,
 * which together take three minutes at most on two cores. --slow runs NAME.slow.test.ts (they kill servers, drive browsers and
 * proxies, fill disks, or go through many random cases), and --all both (npm run test:all). --long sets LONG=1, for tests that
 * take minutes or hours, and adds NAME.long.test.ts. With words it runs every file whose path has one of them, and with --quick
 * those of them that are NAME.test.ts. --summary does not list what passed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { buildProgram } from '../../bench/compiled.ts';
import { TYPE_SCRIPT } from './process/child-program.ts';
import { findMongod } from './store/mongo/find-mongod.ts';
import { startSharedMongod } from './store/mongo/mongod.ts';

const ROOT = join(import.meta.dirname, '../..');
const OWN = ['--long', '--all', '--slow', '--quick', '--summary'];

/**
 * Time limits in milliseconds. A test that hangs fails, and so does a file that an open handle keeps alive
 * (see limit.mjs).
 */
const LIMIT_MS = 5 * 60_000;
const LONG_LIMIT_MS = 60 * 60_000;

const given = process.argv.slice(2);
const words = given.filter((argument) => !argument.startsWith('-'));
const forwarded = given.filter((argument) => argument.startsWith('-') && !OWN.includes(argument));
const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => join('test', path))
  .filter((path) => given.includes('--long') || !path.endsWith('.long.test.ts'))
  .filter((path) => !given.includes('--quick') || !path.endsWith('.slow.test.ts'))
  .filter((path) => (words.length > 0 ? words.some((word) => path.includes(word)) : isInSet(path)))
  .sort();
const unmet = words.filter((word) => !files.some((path) => path.includes(word)));
if (unmet.length > 0) throw new Error(`no test file has ${unmet.join(' or ')} in its path`);

await buildProgram();
/** Whether a file runs when none is named. */
function isInSet(path: string): boolean {
  const isSlow = path.endsWith('.slow.test.ts');
  if (given.includes('--slow')) return isSlow;
  return given.includes('--all') || given.includes('--long') || !isSlow;
}

const limit = given.includes('--long') ? LONG_LIMIT_MS : LIMIT_MS;
const found = await findMongod();
const mongod = process.env.MONGODB_URI ? null : await startSharedMongod(given.includes('--long'));
const child = spawn(
  process.execPath,
  [
    ...[
      '--import',
      './test/support/limit.mjs',
      '--import',
      './test/support/said-at-once.mjs',
      ...TYPE_SCRIPT,
      '--test',
      `--test-concurrency=${availableParallelism() + (given.includes('--slow') ? 2 : 1)}`, // slow tests often wait
    ],
    `--test-timeout=${limit}`,
    ...['--test-reporter', './test/support/reporter.mjs', '--test-reporter-destination', 'stdout'],
    ...forwarded,
    ...files,
  ],
  {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      TEST_FILE_LIMIT_MS: String(limit + 10_000),
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compiled'),
      ...('program' in found ? { MONGOD: found.program } : { NO_MONGOD: found.reason }),
      ...(mongod && { TEST_MONGODB_URI: mongod.uri }),
      ...(given.includes('--long') && { LONG: '1' }),
      ...(given.includes('--summary') && { TEST_SUMMARY: '1' }),
    },
  },
);
// A terminal sends its signals to the runner as well. A signal sent to this process alone is passed on, and
// the mongod is then stopped.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
const [code] = (await once(child, 'exit')) as [number | null];
await mongod?.stop();
process.exitCode = code ?? 1;
