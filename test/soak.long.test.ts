import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { childServer } from './support/child-server.ts';
import { Copy, rowsAt } from './support/copy.ts';
import { startCutter } from './support/cutter.ts';
import { samples } from './support/metrics.ts';
import { randomFrom } from './support/random-collection.ts';
import { SEED } from './support/seed.ts';
import { CLIENTS } from './support/soak/catalogue-clients.ts';
import { ReplicaClients } from './support/soak/replica-clients.ts';
import { insist, ReplicaWorld } from './support/soak/replica-world.ts';
import { UPSETS } from './support/soak/upsets.ts';
import { draw, held, sampled, SECONDS } from './support/soak/samples.ts';

test(`${SECONDS} seconds of everything at once: memory and files stay as they are, nothing goes wrong`, async (t) => {
  const server = await childServer(t, {
    MONGODB_URI: '',
    SAMPLE: 'auto',
    RATE_LIMIT: 'off',
    STREAM_LIMIT: 'off',
    EXPORT_LIMIT: '1000',
  });
  const url = server.url.origin;
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  let turns = 0;
  const clients = CLIENTS.flatMap(([atOnce, client]) =>
    Array.from({ length: atOnce }, async () => {
      while (seconds() < SECONDS) {
        await client(url, turns++);
        await pause(10);
      }
    }),
  );
  const [all] = await Promise.all([sampled(server, seconds), ...clients]);
  if (process.env.PLOTS) draw(process.env.PLOTS, 'Soak', all);
  const { memory, growth, growthOfHeap, growthOfFiles } = held(all);
  const [least, most] = memory;
  t.diagnostic(
    `${turns} turns; after warming up memory ${least.toFixed(0)} to ${most.toFixed(0)} MiB, ` +
      `its floor growing by ${growth.toFixed(1)} MiB, that of the heap by ${growthOfHeap.toFixed(1)} MiB, of files by ${growthOfFiles}`,
  );
  while ((await samples(url)).get('sluice_streams_open') !== 0) await pause(10);
  const ended = server.end('SIGTERM');
  for await (const line of server.log) assert.ok(line.level < 50, JSON.stringify(line));
  assert.equal(await ended, 0);
  assert.ok(growth < Math.max(8, 0.1 * least), 'memory is flat');
  assert.ok(growthOfFiles < 5, 'files are flat');
});

/** The time for readers between two upsets. */
const CALM_MS = 8_000;
const WRITERS = 4;

test(`${SECONDS} seconds of everything at once on a replica set whose parts die in turn (seed ${SEED}): nothing is lost, and nothing is shown to the wrong key`, async (t) => {
  const world = await ReplicaWorld.open(t);
  if (!world) return;
  const random = randomFrom(SEED);
  const cutters = await Promise.all(world.urls.map((url) => startCutter(t, url)));
  const clients = new ReplicaClients(world, cutters, random);
  await clients.learn();
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  const isOver = () => seconds() > SECONDS;
  let [writes, loaded, upsets] = [0, 0, 0];
  const copies = ['all', 'part'].map((name) => ({ name, copy: new Copy(false, world.headers(name)) }));
  const stays = world.servers[1];
  assert.ok(stays);
  const [taken] = await Promise.all([
    sampled(stays, seconds, world.headers('all')),
    ...copies.map(({ name, copy }) => clients.follow(name, copy, isOver)),
    clients.repeat('streams', clients.stream, isOver),
    clients.repeat('streams', clients.stream, isOver),
    clients.repeat('resumed streams', clients.resumed, isOver),
    clients.repeat('walks of pages', clients.pages, isOver),
    clients.repeat('sets of parts', clients.parts, isOver),
    clients.repeat('reads of a part', clients.part, isOver),
    clients.repeat('exports', clients.export, isOver),
    ...Array.from({ length: WRITERS }, async () => {
      for (; !isOver(); await pause(20)) await world.write(random, writes++);
    }),
    (async () => {
      for (; !isOver(); await pause(15_000)) loaded = await world.load();
    })(),
    (async () => {
      for (;;)
        for (const [name, upset] of Object.entries(UPSETS)) {
          await pause(CALM_MS);
          if (isOver()) return;
          await upset(world).catch((error: unknown) => {
            throw new Error(name, { cause: error });
          });
          upsets++;
        }
    })(),
  ]);
  if (process.env.PLOTS) draw(process.env.PLOTS, 'Soak of a replica set', taken);

  const headersOf = (name: string) => world.headers(name);
  for (const { name, copy } of copies) {
    const isWhole = (one: Copy) => one.isUpToDate;
    do {
      await copy.read((world.urls[1] ?? '') + copy.next('/orders/stream'), { until: isWhole }); // what came last, too
    } while (!copy.isUpToDate);
    const rows = await rowsAt(`${world.urls[0] ?? ''}/orders/stream`, headersOf(name));
    assert.deepEqual([...copy.rows.values()].sort(), [...rows.values()].sort(), `the copy of ${name}`);
    if (name === 'all')
      assert.equal(rows.size, await insist(() => world.db.collection('orders').countDocuments()));
  }
  assert.equal(await insist(() => world.db.collection('loads').countDocuments()), loaded, 'imported rows');
  const { memory, growth, growthOfFiles } = held(taken);
  const [least, most] = memory;
  const told = [...clients.tallies].map(([what, { whole, cut }]) => `${what} ${whole} whole and ${cut} cut`);
  t.diagnostic(
    `${upsets} upsets, ${writes} writes, ${loaded} rows imported; ${told.join(', ')}; memory ${least.toFixed(0)} to ` +
      `${most.toFixed(0)} MiB, its floor growing by ${growth.toFixed(1)} MiB, of files by ${growthOfFiles}`,
  );
  assert.deepEqual(world.faults, [], 'no server tells of a fault');
  assert.ok(growth < Math.max(16, 0.1 * least), 'memory is flat');
  assert.ok(growthOfFiles < 20, 'files are flat');
});
