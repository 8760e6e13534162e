/**
 * npm test -- [--all | --slow | --long | --quick] [--summary] [--again] [WORD...] [options of node --test]
 *
 * Runs the tests below test/ on one mongod that is started before and stopped after. Without an option it runs NAME.test.ts,
 * which together take three minutes at most on two cores. --slow runs NAME.slow.test.ts (they kill servers, drive browsers and
 * proxies, fill disks, or go through many random cases), and --all both (npm run test:all). --long sets LONG=1, for tests that
 * take minutes or hours, and adds NAME.long.test.ts. With words it runs every file whose path has one of them, and with --quick
 * those of them that are NAME.test.ts. --summary does not list what passed. With --again the files of failed tests run once
 * more, one at a time, and decide: a test that kills servers on a busy machine may meet what no user meets. More than
 * MOST_AGAIN such files are a defect and no accident.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { buildProgram } from '../../bench/compiled.ts';
import { TYPE_SCRIPT } from './process/child-program.ts';
import { findMongod } from './store/mongo/find-mongod.ts';
import { startSharedMongod } from './store/mongo/mongod.ts';

const ROOT = join(import.meta.dirname, '../..');
const OWN = ['--long', '--all', '--slow', '--quick', '--summary', '--again'];
/** The files that --again runs a second time at most. */
const MOST_AGAIN = 3;

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
const folder = await mkdtemp(join(tmpdir(), 'sluice-run-'));
const failedList = join(folder, 'failed');

/** Aborted when somebody ends the tests: then none run again. */
const stopped = new AbortController();

/** Runs these test files, and gives the exit code of the runner. Files with failed tests are added to `failedList`. */
async function run(chosen: readonly string[], concurrency: number): Promise<number> {
  const child = spawn(
    process.execPath,
    [
      ...['--import', './test/support/limit.mjs', '--import', './test/support/said-at-once.mjs'],
      ...[...TYPE_SCRIPT, '--test', `--test-concurrency=${concurrency}`, `--test-timeout=${limit}`],
      ...['--test-reporter', './test/support/reporter.mjs', '--test-reporter-destination', 'stdout'],
      ...forwarded,
      ...chosen,
    ],
    {
      cwd: ROOT,
      stdio: 'inherit',
      env: {
        ...process.env,
        TEST_FAILED_LIST: failedList,
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
  const passOn = (signal: NodeJS.Signals) => {
    stopped.abort();
    child.kill(signal);
  };
  process.on('SIGINT', passOn).on('SIGTERM', passOn);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.off('SIGINT', passOn).off('SIGTERM', passOn);
  return code ?? 1;
}

let code = await run(files, availableParallelism() + (given.includes('--slow') ? 2 : 1)); // slow tests often wait
if (code !== 0 && given.includes('--again') && !stopped.signal.aborted) {
  const failed = existsSync(failedList) ? readFileSync(failedList, 'utf8').trimEnd().split('\n') : [];
  if (failed.length > 0 && failed.length <= MOST_AGAIN) {
    const names = failed.map((path) => relative(ROOT, path));
    process.stdout.write(`\nOnce more, one at a time, as tests of them failed: ${names.join(', ')}\n`);
    code = await run(failed, 1);
  }
}
await mongod?.stop();
await rm(folder, { recursive: true, force: true });
process.exitCode = code;
