import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openSoak, RESOURCES, type EditionSoak } from '../support/faults/soak/edition-soak.ts';
import { killPrimary, stepDown } from '../support/faults/soak/incidents.ts';
import { insist } from '../support/faults/soak/replica-world.ts';
import { assertBounded, clockOf, sampled } from '../support/faults/soak/samples.ts';
import { Copy, rowsAt } from '../support/resources/copy.ts';
import { SEED } from '../support/seed.ts';
import { Seaweed } from '../support/store/bucket/seaweed.ts';
import { oneOf, randomFrom, type Random } from '../support/store/random-collection.ts';

const SECONDS = Number(process.env.SOAK_SECONDS ?? 600);
/** The time for readers between two incidents. */
const CALM_MS = 8_000;
const DOWN_MS = 4_000;
/** How long the server has nothing to do in the end. */
const REST_SECONDS = 10;
const PULL_EVERY_MS = 10_000;
const SYNC_EVERY_MS = 15_000;

const INCIDENTS: Readonly<Record<string, (soak: EditionSoak, random: Random) => Promise<void>>> = {
  'the primary steps down': ({ ground }) => stepDown(ground),
  'a server is killed': async (soak) => {
    await soak.servers[0]?.end('SIGKILL');
    await pause(DOWN_MS / 4);
    await soak.start(0);
  },
  'a volume server is killed': async ({ ground: { seaweed } }, random) => {
    const name = oneOf(random, Seaweed.VOLUMES);
    await seaweed.kill(name);
    await pause(DOWN_MS);
    await seaweed.restart(name);
  },
  'the primary is killed': ({ ground }) => killPrimary(ground),
};

test(`${SECONDS} seconds of streams, followers, exports, editions, pulls and imports beside servers, primaries and volume servers that die (seed ${SEED}): each copy is the set in the end`, async (t) => {
  const soak = await openSoak(t);
  if (!soak) return;
  const random = randomFrom(SEED);
  const stays = soak.servers[1];
  assert.ok(stays);
  const clock = clockOf(SECONDS);
  const { isOver } = clock;
  const incidents: string[] = [];
  const copies = RESOURCES.map((name) => ({ name, copy: new Copy() }));
  let writes = 0;
  let syncs = 0;
  const [taken] = await Promise.all([
    sampled(stays, clock),
    ...copies.map(({ name, copy }) =>
      soak.repeat('answers to followers', isOver, () => soak.follow(random, name, copy, isOver)),
    ),
    ...RESOURCES.flatMap((name) => [
      soak.repeat('looks at editions', isOver, () => soak.look(random, name), 50),
      soak.repeat('mirrors', isOver, () => soak.pull(name, '--mirror'), PULL_EVERY_MS),
      soak.repeat('copies', isOver, () => soak.pull(name, '--into'), PULL_EVERY_MS),
      soak.repeat('exports', isOver, async () => (await soak.export(random, name)) !== null, 1_000),
    ]),
    soak.repeat('streams', isOver, () => soak.stream(random), 100),
    soak.repeat('writes', isOver, () => soak.write(random, writes++)),
    soak.repeat('imports', isOver, () => soak.sync(random, ++syncs), SYNC_EVERY_MS),
    (async () => {
      for (;;)
        for (const [name, cause] of Object.entries(INCIDENTS)) {
          await pause(CALM_MS);
          if (isOver()) return;
          await cause(soak, random).catch((error: unknown) => {
            throw new Error(name, { cause: error });
          });
          incidents.push(name);
        }
    })(),
  ]);
  const step = Math.max(1, Math.floor(taken.length / 12));
  for (const { seconds, memory, heap, files, sockets } of taken.filter((_, n) => n % step === 0))
    t.diagnostic(
      `${seconds.toFixed(0)} s: memory ${memory.toFixed(0)} MiB, heap ${heap.toFixed(0)} MiB, ${files} files, ${sockets} of them sockets`,
    );
  for (const { name, copy } of copies) await assertEqual(soak, name, copy, random);
  const tallies = [...soak.tallies].map(([what, { whole, cut }]) => `${what} ${whole} whole and ${cut} cut`);
  const counts = Object.values(soak.watches).map(({ editions, deltas }) => `${editions.size} and ${deltas}`);
  t.diagnostic(
    `${incidents.length} incidents; ${tallies.join(', ')}; editions and deltas ${counts.join(', ')}`,
  );
  for (const refusal of new Set(soak.refusals)) t.diagnostic(refusal);
  assert.deepEqual(soak.faults, [], 'no server logs a fault');
  for (const name of Object.keys(INCIDENTS)) assert.ok(incidents.includes(name), name);
  for (const [what, { whole }] of soak.tallies) assert.ok(whole > 0, what);
  t.diagnostic(assertBounded('the server that stays', taken, await sampled(stays, clockOf(REST_SECONDS))));
});

/** Asserts that a follower's copy, an edition, a mirror, a copy in SQLite and an export are the set. */
async function assertEqual(
  soak: EditionSoak,
  name: (typeof RESOURCES)[number],
  copy: Copy,
  random: Random,
): Promise<void> {
  const { urls, db } = soak.ground;
  const rows = await rowsAt(`${urls[0] ?? ''}/${name}/stream`);
  const lines = [...rows.values()];
  const there: number = await insist(() => db.collection(name).countDocuments());
  assert.equal(lines.length, there, name);
  do {
    await copy.read((urls[1] ?? '') + copy.next(`/${name}/stream`), { until: (one) => one.isUpToDate });
  } while (!copy.isUpToDate);
  assert.deepEqual([...copy.rows.values()].toSorted(), lines.toSorted(), `the follower of ${name}`);
  const edition = await soak.editionOf(name, lines);
  for (const how of ['--mirror', '--into'] as const)
    while (!(await soak.pull(name, how))) await pause(DOWN_MS);
  assert.deepEqual(await soak.mirrored(name), lines, `the mirror of ${name}, of edition ${edition}`);
  assert.deepEqual(soak.copied(name), lines, `the copy of ${name}: ${soak.said}`);
  let exported: string[] | null = null;
  while (!(exported = await soak.export(random, name))) await pause(DOWN_MS);
  assert.deepEqual(exported, lines, `the export of ${name}`);
}
