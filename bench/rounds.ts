import type { Effort, Ground, Kind, Proof, Subject } from './kinds/kind.ts';
import { besideStreams } from './kinds/beside-streams.ts';
import { changeEvents } from './kinds/change-events.ts';
import { clients } from './kinds/clients.ts';
import { clickhouse } from './kinds/clickhouse.ts';
import { editionReaders } from './kinds/edition-readers.ts';
import { editions } from './kinds/editions.ts';
import { exports } from './kinds/exports.ts';
import { followWalk } from './kinds/follow-walk.ts';
import { followers } from './kinds/followers.ts';
import { frames } from './kinds/frames.ts';
import { imports } from './kinds/imports.ts';
import { openPages } from './kinds/open-pages.ts';
import { requests } from './kinds/requests.ts';
import { slowReader } from './kinds/slow-reader.ts';
import { stalled } from './kinds/stalled.ts';
import { coldStart, firstRow } from './kinds/starts.ts';
import { partitions } from './kinds/partitions.ts';
import { pull } from './kinds/pull.ts';
import { stream } from './kinds/stream.ts';
import { users } from './kinds/users.ts';
import type { Round, ScenarioResult } from './results.ts';
import type { Measurement, Scenario } from './scenarios/scenario.ts';

type KindOf<S> = S extends Measurement ? Kind<S> : never;

const KINDS: { readonly [K in Measurement['kind']]: KindOf<Extract<Measurement, { kind: K }>> } = {
  partitions,
  pull,
  stream,
  clients,
  clickhouse,
  requests,
  exports,
  editions,
  users,
  followers,
  frames,
  imports,
  stalled,
  'beside-streams': besideStreams,
  'edition-readers': editionReaders,
  'change-events': changeEvents,
  'follow-walk': followWalk,
  'open-pages': openPages,
  'slow-reader': slowReader,
  'cold-start': coldStart,
  'first-row': firstRow,
};

/**
 * A subject measured for this many seconds gets no further round. The slowest one would otherwise take most
 * of a run.
 */
const ENOUGH_SECONDS = 30;

/**
 * The seconds that a subject answers before rounds count, the comparison included. V8 compiles in them: streams of Arrow
 * took 0.67 s of CPU for a million rows in the first rounds, and 0.46 later. Slow subjects have taken more for the comparison.
 */
const WARM_SECONDS = 6;

/** What this machine lacks to measure a scenario. null: nothing. */
export function missingFor(scenario: Scenario): Promise<string | null> {
  const kind = KINDS[scenario.kind] as Kind<Scenario>;
  return kind.missing?.(scenario) ?? Promise.resolve(null);
}

/**
 * Measures a scenario. The answers are compared first, which warms the subjects up, and streams go on for some
 * seconds. Then the subjects alternate, in the opposite order each second round, so that other work on the
 * machine affects all of them alike. `warms`: a round that does not count comes first, because V8 still
 * compiles in it, and two revisions of one server differ by less than that.
 */
export async function runScenario(
  scenario: Scenario,
  subjects: readonly Subject[],
  { store, rows }: Pick<Ground, 'store' | 'rows'>,
  effort: Effort,
  { rounds: roundsEach, warms }: { readonly rounds: number; readonly warms: boolean },
): Promise<ScenarioResult> {
  const kind = KINDS[scenario.kind] as Kind<Scenario>;
  const own = { ...effort, seconds: effort.seconds * (scenario.effort ?? 1) };
  const jobOf = (subject: Subject) => ({ scenario, subject, ground: subject.ground, effort: own });

  const { proofOf, seconds } = await compare(scenario, subjects, (subject) => kind.check(jobOf(subject)));
  if (kind.needsWarmth?.(scenario) === true)
    for (const subject of subjects) {
      const measure = () => kind.measure(jobOf(subject), proofOf(subject));
      await warmUp(measure, WARM_SECONDS * effort.share - (seconds.get(subject) ?? 0));
    }
  const taken = new Map<string, Round[]>(subjects.map(({ name }) => [name, []]));
  for (let round = warms ? -1 : 0; round < roundsEach; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const before = taken.get(subject.name) ?? [];
      if (secondsOf(before) > ENOUGH_SECONDS) continue;
      const measured = await kind.measure(jobOf(subject), proofOf(subject));
      if (round >= 0) taken.set(subject.name, [...before, measured]);
    }
  }
  const { name, shows, group, x } = scenario;
  return {
    name,
    kind: scenario.kind,
    shows,
    group,
    store,
    rows,
    ...(x !== undefined && { x }),
    series: [...taken].map(([candidate, all]) => ({ candidate, rounds: all })),
  };
}

interface Comparison {
  /** The answer that the rounds of a subject must repeat: for a limit, that of another subject. */
  readonly proofOf: (subject: Subject) => Proof;
  /** How long each subject took to answer. */
  readonly seconds: ReadonlyMap<Subject, number>;
}

/** Compares the answers of all subjects. Rejects when they differ. */
async function compare(
  { name }: Scenario,
  subjects: readonly Subject[],
  check: (subject: Subject) => Promise<Proof | null>,
): Promise<Comparison> {
  const proofs = new Map<string, Proof>();
  const seconds = new Map<Subject, number>();
  for (const subject of subjects) {
    const started = performance.now();
    const proof = await check(subject);
    if (proof) proofs.set(subject.name, proof);
    seconds.set(subject, (performance.now() - started) / 1000);
  }
  assertEqual(name, proofs);
  const [first] = proofs.values();
  const proofOf = (subject: Subject): Proof => {
    const proof = proofs.get(subject.name) ?? first;
    if (!proof) throw new TypeError(`${name} has no server to compare with`);
    return proof;
  };
  return { proofOf, seconds };
}

/** Measures rounds that do not count, for some seconds. */
async function warmUp(measure: () => Promise<Round>, seconds: number): Promise<void> {
  for (let left = seconds; left > 0;) left -= (await measure()).seconds;
}

function secondsOf(rounds: readonly Round[]): number {
  return rounds.reduce((sum, { seconds }) => sum + seconds, 0);
}

function assertEqual(scenario: string, proofs: ReadonlyMap<string, Proof>): void {
  if (new Set([...proofs.values()].map(({ text }) => text)).size <= 1) return;
  const all = [...proofs].map(([candidate, { text }]) => `  ${candidate}: ${text.slice(0, 300)}`);
  throw new Error(`${scenario}: the candidates' answers differ:\n${all.join('\n')}`);
}
