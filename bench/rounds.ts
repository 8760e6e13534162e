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

/** What this machine lacks to measure a scenario. null: nothing. */
export function missingFor(scenario: Scenario): Promise<string | null> {
  const kind = KINDS[scenario.kind] as Kind<Scenario>;
  return kind.missing?.(scenario) ?? Promise.resolve(null);
}

/**
 * Measures a scenario. The answers are compared first, which warms the subjects up. Then the subjects
 * alternate, in the opposite order each second round, so that other work on the machine affects all of them
 * alike. `warms`: a round that does not count comes first, because V8 still compiles in it, and two revisions
 * of one server differ by less than that.
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

  const proofs = new Map<string, Proof>();
  for (const subject of subjects) {
    const proof = await kind.check(jobOf(subject));
    if (proof) proofs.set(subject.name, proof);
  }
  assertEqual(scenario.name, proofs);
  const taken = new Map<string, Round[]>(subjects.map(({ name }) => [name, []]));
  for (let round = warms ? -1 : 0; round < roundsEach; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const before = taken.get(subject.name) ?? [];
      if (secondsOf(before) > ENOUGH_SECONDS) continue;
      const proof = proofs.get(subject.name) ?? [...proofs.values()][0];
      if (!proof) throw new TypeError(`${scenario.name} has no server to compare with`);
      const measured = await kind.measure(jobOf(subject), proof);
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

function secondsOf(rounds: readonly Round[]): number {
  return rounds.reduce((sum, { seconds }) => sum + seconds, 0);
}

function assertEqual(scenario: string, proofs: ReadonlyMap<string, Proof>): void {
  if (new Set([...proofs.values()].map(({ text }) => text)).size <= 1) return;
  const all = [...proofs].map(([candidate, { text }]) => `  ${candidate}: ${text.slice(0, 300)}`);
  throw new Error(`${scenario}: the candidates' answers differ:\n${all.join('\n')}`);
}
