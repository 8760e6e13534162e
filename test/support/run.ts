/**
 * npm test -- [--all | --slow | --long] [--summary] [WORD...] [options of node --test]
 *
 * Runs the tests of test/*.test.ts on one mongod that is started before and stopped after. Without an option it leaves out
 * what takes long: see SLOW. --slow runs what it leaves out, and --all everything (npm run test:all). --long sets LONG=1,
 * for tests that take minutes or hours, and adds test/*.long.test.ts. With words it runs every file whose name has one of
 * them. --summary does not list what passed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { buildProgram } from '../../bench/compiled.ts';
import { findMongod } from './find-mongod.ts';
import { startSharedMongod } from './mongod.ts';

const ROOT = join(import.meta.dirname, '../..');
const OWN = ['--long', '--all', '--slow', '--summary'];

/**
 * Files that kill servers, drive browsers and proxies, fill disks, or go through many random cases: `npm test` is to take
 * three minutes at most on two cores.
 */
const SLOW = [
  'access',
  'addon',
  'arrow',
  'bench-.*',
  'build',
  'change-feed(-model)?',
  'changes(-(clients|model|shared))?',
  'collection-replaced',
  'count',
  'docs',
  'engine-(slow|stall)',
  'explorer(-(access|resources|table))?',
  'exports(-.*)?',
  'estimated-rows',
  'failover',
  'faults',
  'fuzz-.*',
  'hang-up',
  'hidden-as-unknown',
  'ids-.*',
  'import-(columns|command|drop|kills|sqlite|sample|spreadsheet|stop)',
  'index-changes',
  'lane-(access|broken)',
  'large-row',
  'leaks(-(changes|changes-forms|forms|random))?',
  'leave-stalled',
  'limiter-(redis|server)',
  'listening',
  'sqlite-(backup|changes|damage|disk-full|durability|kills|load-.*|neighbours|read|retention|statements)',
  'log-format',
  'load(-(?!report|result).*)?',
  'long-(input|keys)',
  'memory',
  'mongo-(away|change-(feed|model|oplog)|changes(-faults)?|failing-replies|faults|foreign|large|load|load-kills|odd-values|plain-collection|retry|setup)',
  'nested-fields',
  'not-ready',
  'openapi',
  'overload',
  'own-id',
  'package',
  'park',
  'price-range',
  'proxies(-follow)?',
  'pull(-.*)?',
  'queue',
  'readme(-(clients|keys))?',
  'redis-away-stop',
  'resource-(commands|discovery|kills|list|long-values)',
  'resources(-.*)?',
  'schemathesis',
  'selection-random',
  'slow-readers',
  'snapshot',
  'stalled',
  'stop',
  'store-away',
  'stream-(checkpoints|chunks|csv|cuts|resume)',
  'tokens-shared',
  'transcoder-(chunks|corrupt|random)',
  'users-(bad-input|durability|part|race)',
  'workers',
  'writers',
];
const isSlow = new RegExp(`^(${SLOW.join('|')})\\.test\\.ts$`);

/**
 * Time limits in milliseconds. A test that hangs fails, and so does a file that an open handle keeps alive
 * (see limit.mjs).
 */
const LIMIT_MS = 5 * 60_000;
const LONG_LIMIT_MS = 60 * 60_000;

const given = process.argv.slice(2);
const words = given.filter((argument) => !argument.startsWith('-'));
const forwarded = given.filter((argument) => argument.startsWith('-') && !OWN.includes(argument));
const files = readdirSync(join(ROOT, 'test'))
  .filter((name) => name.endsWith('.test.ts'))
  .filter((name) => given.includes('--long') || !name.endsWith('.long.test.ts'))
  .filter((name) => (words.length > 0 ? words.some((word) => `test/${name}`.includes(word)) : isInSet(name)))
  .map((name) => join('test', name));
if (files.length === 0) throw new Error(`no test file has ${words.join(' or ')} in its name`);

await buildProgram();
/** Whether a file runs when none is named. */
function isInSet(name: string): boolean {
  if (given.includes('--slow')) return isSlow.test(name);
  return given.includes('--all') || given.includes('--long') || !isSlow.test(name);
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
      '--import',
      'tsx',
      '--test',
      `--test-concurrency=${availableParallelism() + 1}`,
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
