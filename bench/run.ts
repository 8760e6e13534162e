/**
 * npm run bench -- [options]; see options.ts, or --help
 *
 * Measures all candidates side by side in one run. The generated items are always the same, and each
 * candidate is a process of its own. The candidates alternate in rounds, each second round in the opposite
 * order. Their answers are compared before anything is timed.
 */
import { writeFileSync } from 'node:fs';
import { reasonOf } from '../src/base/error-reason.ts';
import { CANDIDATES, type CandidateName } from './candidates.ts';
import { buildProgram } from './compiled.ts';
import { openDatabaseServer, openGround, type DatabaseServer } from './ground.ts';
import { Lineup, type Revision } from './lineup.ts';
import { commit, machineLine, versions } from './machine.ts';
import { runMicro } from './micro/run.ts';
import { HELP, holds, readOptions, type Options } from './options.ts';
import { publish } from './report/publish.ts';
import { reportText } from './report/text.ts';
import type { Results, ScenarioResult, StoreName } from './results.ts';
import { checkOut, compare } from './revision.ts';
import { missingFor, runScenario } from './rounds.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { createScenarios } from './scenarios.ts';

/** The scenarios that share a store with the same items. */
interface Stage {
  readonly store: StoreName;
  readonly rows: number;
  readonly scenarios: readonly Scenario[];
}

function stages(options: Options): Stage[] {
  const chosen = createScenarios(options.rows).filter(({ name, set }) =>
    options.scenarios.length === 0
      ? holds(options.set, set)
      : options.scenarios.some((wanted) => name.startsWith(wanted)),
  );
  if (chosen.length === 0) throw new Error(`no such scenario: ${options.scenarios.join(', ')}; see --list`);
  return options.stores.flatMap((store) => {
    const here = chosen.filter(({ on }) => (on[store]?.length ?? 0) > 0);
    const scales = [...new Set(here.map(({ scale = 1 }) => scale))].sort((a, b) => a - b);
    const all = scales.map((scale) => ({
      store,
      rows: Math.round(options.rows * scale),
      scenarios: here.filter((scenario) => (scenario.scale ?? 1) === scale),
    }));
    // The size with the most scenarios comes last, so that an interrupted run has completed the others.
    return all.sort((a, b) => a.scenarios.length - b.scenarios.length);
  });
}

/**
 * The candidates that take part. With --quick that is one peer, and only where rows are read: the peers'
 * other figures belong to a run that publishes figures.
 */
function candidates({ on, group }: Scenario, store: StoreName, { set }: Options): readonly CandidateName[] {
  const names: readonly CandidateName[] = on[store] ?? [];
  if (set !== 'quick') return names;
  const peer = group === 'others' ? undefined : names.find((name) => CANDIDATES[name].role === 'peer');
  return names.filter((name) => CANDIDATES[name].role !== 'peer' || name === peer);
}

/** A run in progress. */
interface Run {
  readonly options: Options;
  readonly server: DatabaseServer | null;
  readonly revision: Revision | null;
  readonly results: ScenarioResult[];
  readonly failures: string[];
  /** Set by the first SIGINT: the current scenario is the last one. */
  isEnding: boolean;
}

async function runStage(run: Run, { store, rows, scenarios }: Stage): Promise<void> {
  const { server, revision, options, failures } = run;
  progress(`${store}: ${rows} items`);
  const withOrders = scenarios.some(({ needs }) => needs === 'orders');
  const ground = await openGround({ store, rows, withOrders }, server);
  const its = revision && (await openGround({ store, rows, withOrders, revision }, server));
  const lineup = new Lineup(ground, revision && its && { ...revision, ground: its });
  const effort = { seconds: options.seconds, share: options.set === 'quick' ? 0.1 : 1 };
  try {
    for (const scenario of scenarios) {
      if (run.isEnding) break;
      const missing = await missingFor(scenario);
      if (missing !== null) {
        progress(`${store}: ${scenario.name}: skipped: ${missing}`);
        continue;
      }
      const subjects = await lineup.of(candidates(scenario, store, options));
      progress(`${store}: ${scenario.name}: ${scenario.shows}`);
      try {
        const rounds = { rounds: options.rounds, warms: revision !== null };
        run.results.push(await runScenario(scenario, subjects, ground, effort, rounds));
      } catch (error) {
        // A failed scenario does not discard minutes of other scenarios. The run fails at its end.
        failures.push(
          `${store}: ${scenario.name}: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
  } finally {
    await lineup.stop();
    await ground.close();
    await its?.close();
  }
}

async function measure(options: Options): Promise<number> {
  const started = performance.now();
  const plan = stages(options);
  const revision = options.against === undefined ? null : await checkOut(options.against);
  const server = plan.some(({ store }) => store === 'mongodb') ? await openDatabaseServer() : null;
  const run: Run = { options, server, revision, results: [], failures: [], isEnding: false };
  process.once('SIGINT', () => {
    progress('ending behind this scenario; once more to end at once');
    run.isEnding = true;
  });
  try {
    for (const stage of plan) if (!run.isEnding) await runStage(run, stage);
  } finally {
    await server?.stop();
    await revision?.remove();
  }
  const last = run.results.at(-1);
  const results: Results = {
    machine: machineLine(),
    versions: versions(server?.version ?? null),
    commit: commit(),
    command: commandLine(process.argv.slice(2)),
    date: new Date().toISOString().slice(0, 10),
    minutes: Math.round((performance.now() - started) / 6_000) / 10,
    ...(run.isEnding && last && { endedAfter: `${last.name} on ${last.store}` }),
    scenarios: run.results,
  };
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 1)}\n`);
  for (const failure of run.failures) process.stderr.write(`FAILED ${failure}\n`);
  if (revision) return Math.max(against(results, revision.name), run.failures.length > 0 ? 1 : 0);
  process.stdout.write(reportText(results));
  if (options.publish) publish(results, options.scenarios.length > 0);
  return run.failures.length > 0 ? 1 : 0;
}

/** The command line without the file that --json names, which is a path on this machine. */
function commandLine(argv: readonly string[]): string {
  const shown = argv.filter((word, index) => !word.startsWith('--json') && argv[index - 1] !== '--json');
  return ['npm run bench', ...(shown.length > 0 ? ['--', ...shown] : [])].join(' ');
}

function against({ scenarios }: Results, revision: string): number {
  const verdicts = compare(scenarios, revision);
  for (const { scenario, candidate, ratio, cpu, is } of verdicts)
    process.stdout.write(
      `${ratio.toFixed(2)}x  ${cpu.toFixed(2)}x CPU  ${is.padEnd(8)}  ${scenario}: ${candidate}\n`,
    );
  return verdicts.some(({ is }) => is === 'slower') ? 1 : 0;
}

function list(options: Options): string {
  const lines = createScenarios(options.rows).map(
    ({ name, set, on, shows }) =>
      `${name.padEnd(18)} ${set.padEnd(8)} ${Object.keys(on).join(', ').padEnd(14)} ${shows}`,
  );
  const who = Object.entries(CANDIDATES).map(
    ([name, { role, says }]) => `${name.padEnd(30)} ${role.padEnd(6)} ${says}`,
  );
  return `${[...lines, '', ...who].join('\n')}\n`;
}

/** Writes a line with the seconds since the start. */
function progress(line: string): void {
  process.stderr.write(`${Math.round(performance.now() / 1000)} s: ${line}\n`);
}

/** The options of the command line. A wrong one ends the process with a sentence. */
function givenOptions(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`bench: ${reasonOf(error)}\n\nnpm run bench -- --help explains the options.\n`);
    process.exit(2);
  }
}

const options = givenOptions();
if (options.mode === 'micro' || options.mode === 'measure') await buildProgram();
if (options.mode === 'help') process.stdout.write(HELP);
else if (options.mode === 'list') process.stdout.write(list(options));
else if (options.mode === 'micro') await runMicro();
else process.exitCode = await measure(options);
