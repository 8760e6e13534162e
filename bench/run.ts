/**
 * npm run bench -- [--quick] [--rows N] [--rounds N] [--scenario NAME] [--json FILE]
 *
 * Everything side by side in one run: a fresh mongod with the same generated items every time, each candidate a process
 * of its own, rounds alternating with the order swapped, answers compared before anything is timed.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startMongod } from '../test/support/mongod.ts';
import { fingerprintOf, measure, type Candidate, type Round } from './measure.ts';
import { runToEnd, startProcess } from './process.ts';
import { commit, machineLine, table, type Results, type Series } from './report.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rows: { type: 'string' },
    rounds: { type: 'string' },
    scenario: { type: 'string' },
    json: { type: 'string' },
  },
});
const rows = Number(values.rows ?? (values.quick ? 50_000 : 1_000_000));
const rounds = Number(values.rounds ?? (values.quick ? 1 : 5));
const pageSeconds = values.quick ? 2 : 8;
const chosen = SCENARIOS.filter(({ name }) => values.scenario === undefined || name === values.scenario);
if (chosen.length === 0)
  throw new Error(`no scenario ${values.scenario ?? ''}: ${SCENARIOS.map(({ name }) => name).join(', ')}`);

const here = import.meta.dirname;
const CLI = join(here, '../src/cli.ts');

async function startCandidates(uri: string): Promise<Candidate[]> {
  const environment = { MONGODB_URI: uri };
  const own = await startProcess(CLI, ['serve'], {
    ...environment,
    PORT: '0',
    SAMPLE: 'off',
    RATE_LIMIT: 'off',
  });
  const { url, engine } = JSON.parse(own.announced) as { url: string; engine: string };
  if (process.env.REQUIRE_ALL && engine !== 'uWebSockets.js')
    throw new Error(`the engine is ${engine}, not uWebSockets.js`);
  const limit = await startProcess(join(here, 'limits/chain.ts'), [], environment);
  const peer = await startProcess(join(here, 'peers/fastify.ts'), [], { ...environment, PORT: '3919' });
  return [
    { name: 'sluice', process: own, url },
    { name: 'bare chain (limit)', process: limit, url: null },
    { name: 'fastify', process: peer, url: 'http://127.0.0.1:3919' },
  ];
}

async function runScenario(scenario: Scenario, all: readonly Candidate[]): Promise<Series[]> {
  const candidates = all.filter(({ url }) => url !== null || scenario.kind === 'stream');
  const answers = new Set<string>();
  for (const candidate of candidates) {
    const answer = await fingerprintOf(candidate, scenario);
    if (answer !== null) answers.add(answer);
  }
  if (answers.size !== 1)
    throw new Error(
      `${scenario.name}: the candidates' answers differ:\n${[...answers].map((answer) => answer.slice(0, 300)).join('\n')}`,
    );
  const results = new Map<string, Round[]>(candidates.map(({ name }) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    const order = round % 2 === 0 ? candidates : candidates.toReversed();
    for (const candidate of order) {
      const result = await measure(candidate, scenario, rows, pageSeconds);
      if (round >= 0) results.get(candidate.name)?.push(result); // the first round warms up
    }
  }
  return [...results].map(([candidate, series]) => ({ candidate, rounds: series }));
}

const mongod = await startMongod();
if (mongod === null) throw new Error('bench needs a mongod: set MONGOD or put one on PATH');
try {
  const uri = mongod.uri.replace(/\/[^/?]*(\?|$)/, '/bench$1');
  process.stderr.write(`importing ${rows} items\n`);
  await runToEnd(CLI, ['import', '--generate', String(rows), '--seed', '1'], { MONGODB_URI: uri });
  const candidates = await startCandidates(uri);
  const scenarios: Results['scenarios'][number][] = [];
  for (const scenario of chosen) {
    process.stderr.write(`${scenario.name}: ${scenario.shows}\n`);
    scenarios.push({ scenario, series: await runScenario(scenario, candidates) });
  }
  for (const candidate of candidates) await candidate.process.stop();
  const results: Results = {
    machine: machineLine(),
    commit: commit(),
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`.trim(),
    date: new Date().toISOString(),
    rows,
    scenarios,
  };
  process.stdout.write(
    `${results.machine}; commit ${results.commit}; ${results.command}; ${rows} items\n\n${table(results)}\n`,
  );
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
} finally {
  await mongod.stop();
}
