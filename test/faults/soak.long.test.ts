import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { childServer, type ChildServer } from '../support/process/child-server.ts';
import { Copy, rowsAt } from '../support/resources/copy.ts';
import { startCutter } from '../support/faults/cutter.ts';
import { samples } from '../support/telemetry/metrics.ts';
import { randomFrom } from '../support/store/random-collection.ts';
import { SEED } from '../support/seed.ts';
import { runClients } from '../support/faults/soak/catalogue-clients.ts';
import { replicaClients } from '../support/faults/soak/replica-clients.ts';
import { insist, openWorld } from '../support/faults/soak/replica-world.ts';
import { assertFlat, clockOf, draw, sampled } from '../support/faults/soak/samples.ts';
import { INCIDENTS } from '../support/faults/soak/incidents.ts';

const SECONDS = Number(process.env.SOAK_SECONDS ?? 600);
const REPLICA_SECONDS = Number(process.env.SOAK_SECONDS ?? 1_800);

function catalogueServer(t: TestContext): Promise<ChildServer> {
  const limits = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off', EXPORT_LIMIT: '1000' };
  return childServer(t, { MONGODB_URI: '', SAMPLE: 'auto', ...limits });
}

/** Stops a server in order. Its log must contain no fault. */
async function stop(server: ChildServer): Promise<void> {
  while ((await samples(server.url)).get('sluice_streams_open') !== 0) await pause(10);
  const ended = server.end('SIGTERM');
  for await (const line of server.log) assert.ok(line.level < 50, JSON.stringify(line));
  assert.equal(await ended, 0);
}

test(`${SECONDS} seconds of everything at once: memory and files stay as they are, nothing goes wrong`, async (t) => {
  const server = await catalogueServer(t);
  const clock = clockOf(SECONDS);
  const [taken, turns] = await Promise.all([
    sampled(server, clock),
    runClients(server.url.origin, clock.isOver),
  ]);
  if (process.env.PLOTS) draw(process.env.PLOTS, 'Soak', taken);
  t.diagnostic(`${turns} turns; ${assertFlat('the server', taken)}`);
  await stop(server);
});

/** The time for readers between two incidents. */
const CALM_MS = 8_000;
const WRITERS = 4;
const LOAD_EVERY_MS = 15_000;

test(`${REPLICA_SECONDS} seconds of everything at once on a replica set whose parts die in turn (seed ${SEED}): nothing is lost, and nothing is shown to the wrong key`, async (t) => {
  const world = await openWorld(t);
  if (!world) return;
  const random = randomFrom(SEED);
  const cutters = await Promise.all(world.urls.map((url) => startCutter(t, url)));
  const clients = replicaClients(world, cutters, random);
  await clients.learn();
  const embedded = await catalogueServer(t);
  const stays = world.servers[1];
  assert.ok(stays);
  const clock = clockOf(REPLICA_SECONDS);
  const { isOver } = clock;
  let writes = 0;
  let loaded = 0;
  const incidents: string[] = [];
  const copies = ['all', 'part'].map((name) => ({ name, copy: new Copy(false, world.headers(name)) }));
  const [taken, takenOfEmbedded] = await Promise.all([
    sampled(stays, clock, world.headers('all')),
    sampled(embedded, clock),
    runClients(embedded.url.origin, isOver),
    ...copies.map(({ name, copy }) => clients.follow(name, copy, isOver)),
    clients.repeat('streams', clients.stream, isOver),
    clients.repeat('streams', clients.stream, isOver),
    clients.repeat('resumed streams', clients.resumed, isOver),
    clients.repeat('slow streams', clients.slow, isOver),
    clients.repeat('walks of pages', clients.pages, isOver),
    clients.repeat('sets of parts', clients.parts, isOver),
    clients.repeat('reads of a part', clients.part, isOver),
    clients.repeat('exports', clients.export, isOver),
    ...Array.from({ length: WRITERS }, async () => {
      while (!isOver()) {
        await world.write(random, writes++);
        await pause(20);
      }
    }),
    (async () => {
      while (!isOver()) {
        loaded = await world.load();
        await pause(LOAD_EVERY_MS);
      }
    })(),
    (async () => {
      for (;;)
        for (const [name, cause] of Object.entries(INCIDENTS)) {
          await pause(CALM_MS);
          if (isOver()) return;
          await cause(world).catch((error: unknown) => {
            throw new Error(name, { cause: error });
          });
          incidents.push(name);
        }
    })(),
  ]);
  if (process.env.PLOTS) {
    draw(process.env.PLOTS, 'Soak of a replica set', taken);
    draw(process.env.PLOTS, 'Soak beside a replica set', takenOfEmbedded);
  }

  for (const { name, copy } of copies) {
    const isWhole = (one: Copy) => one.isUpToDate;
    do {
      await copy.read((world.urls[1] ?? '') + copy.next('/orders/stream'), { until: isWhole }); // what came last, too
    } while (!copy.isUpToDate);
    const rows = await rowsAt(`${world.urls[0] ?? ''}/orders/stream`, world.headers(name));
    assert.deepEqual([...copy.rows.values()].sort(), [...rows.values()].sort(), `the copy of ${name}`);
    const filter = name === 'part' ? { tenant: 'acme' } : {};
    const there: number = await insist(() => world.db.collection('orders').countDocuments(filter));
    assert.equal(rows.size, there);
  }
  assert.equal(await insist(() => world.db.collection('loads').countDocuments()), loaded, 'imported rows');
  const tallies = [...clients.tallies].map(
    ([what, { whole, cut }]) => `${what} ${whole} whole and ${cut} cut`,
  );
  t.diagnostic(
    `${incidents.length} incidents, ${writes} writes, ${loaded} rows imported; ${tallies.join(', ')}`,
  );
  assert.deepEqual(world.faults, [], 'no server logs a fault');
  assert.deepEqual(
    Object.keys(INCIDENTS).filter((name) => !incidents.includes(name)),
    [],
    'each incident came',
  );
  for (const [what, { whole }] of clients.tallies) assert.ok(whole > 0, what);
  t.diagnostic(assertFlat('the server that stays', taken, { files: 20 }));
  t.diagnostic(assertFlat('the embedded store', takenOfEmbedded));
  await stop(embedded);
});
