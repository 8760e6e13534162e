import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { EditionHead } from '../../../../src/base/edition/head.ts';
import { Copy } from '../../resources/copy.ts';
import { below, oneOf, type Random } from '../../store/random-collection.ts';
import { EditionServers } from './edition-servers.ts';
import { EditionWatch, untouchedChunks, type SeenEdition } from './edition-watch.ts';
import type { EditionWorld } from './edition-world.ts';
import { Script, WrittenRows, WRITERS, type WrittenTime } from './written-rows.ts';

const SERVERS = 2;
/** The longest time within which an edition is made of what was written. Milliseconds. */
const MADE_MS = 120_000;
const POLL_MS = 100;
/** The rest of a writer between two writes. */
const WRITE_MS = 5;
/** The most editions of which a copy follows the changes. */
const FOLLOWED = 6;

type Fault = (run: EditionRun, random: Random) => Promise<void>;

const FAULTS: Readonly<Record<string, Fault>> = {
  'the builder is killed': async (run, random) => {
    await run.servers.insist('/orders/edition', 'POST');
    await pause(below(random, 120));
    const killed = [[0], [1], [0, 1]][below(random, 3)] ?? [];
    await Promise.all(killed.map((n) => run.servers.kill(n)));
    await Promise.all(killed.map((n) => run.servers.start(n)));
  },
  'the primary steps down': (run) => run.world.depose?.() ?? Promise.resolve(),
  'the history expires': async (run) => {
    await run.servers.killAll();
    await run.world.expire();
    run.expiries.push(Date.now());
    await Promise.all([run.servers.start(0), run.servers.start(1)]);
  },
};

/** A history on one store: its writers, its servers, and who reads its editions all the time. */
export class EditionRun {
  readonly world: EditionWorld;
  readonly servers: EditionServers;
  readonly writers: readonly WrittenRows[];
  readonly watch: EditionWatch;
  /** When the changes were lost. */
  readonly expiries: number[] = [];
  readonly faults: string[] = [];
  /** Editions that begin anew behind a loss of changes: there is no delta to them. */
  anew = 0;
  /** The steps of each writer that editions have, by their numbers. */
  readonly #steps = new Map<number, readonly WrittenTime[]>();

  constructor(t: TestContext, world: EditionWorld, seed: number, ids: number) {
    this.world = world;
    this.servers = new EditionServers(t, world.settings);
    this.writers = Array.from({ length: WRITERS }, (_, n) => new WrittenRows(new Script(seed, n, ids)));
    const fileOf = async (name: string) => (await this.servers.get(`/orders/chunks/${name}`))?.body ?? null;
    this.watch = new EditionWatch(world.objects, 'orders', fileOf, (edition, before) =>
      this.#check(edition, before),
    );
  }

  /** Writes and reads while all goes wrong that may. Resolves when it is over. */
  async run(random: Random, rounds: number): Promise<void> {
    await Promise.all(Array.from({ length: SERVERS }, (_, n) => this.servers.start(n)));
    let isOver = false;
    const repeat = async (work: () => Promise<void>, ms: number): Promise<void> => {
      while (!isOver) {
        await work();
        await pause(ms);
      }
    };
    const working = Promise.all([
      ...this.writers.map((writer) => repeat(() => this.#write(writer), WRITE_MS)),
      repeat(() => this.watch.lookAtFolder(), POLL_MS),
      repeat(async () => {
        const head = await this.servers.get('/orders/edition');
        if (head) await this.watch.look(head.body, head.url); // servers keep a head for a second, each its own
      }, POLL_MS),
    ]);
    const failed = working.then(() => undefined);
    failed.catch(() => undefined); // `race` rejects
    try {
      for (let round = 0; round < rounds; round++) {
        const names = Object.keys(FAULTS);
        const name = round < names.length ? (names[round] ?? '') : oneOf(random, names);
        const fault = FAULTS[name] ?? assert.fail();
        await Promise.race([fault(this, random), failed]);
        this.faults.push(name);
        const { size } = this.watch.editions;
        await Promise.race([this.#until(() => this.watch.editions.size > size), failed]);
      }
    } finally {
      isOver = true;
    }
    await working;
  }

  /** Does the same steps as another run did, makes an edition of them, and proves its changes. Resolves with that edition. */
  async finish(others: EditionRun): Promise<SeenEdition> {
    for (const [n, writer] of this.writers.entries())
      while (writer.length < (others.writers[n]?.length ?? 0)) await this.#write(writer);
    const rows = this.rows();
    const newest = await this.#editionOf(rows);
    await this.#follow(rows);
    return newest;
  }

  /** The rows behind all steps, by their ids. */
  rows(): Map<string, string> {
    return new Map(
      this.writers.flatMap((writer) => [...writer.rows()]).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );
  }

  #write(writer: WrittenRows): Promise<void> {
    return writer.next(({ id, line }) => this.world.write(id, line));
  }

  async #until(holds: () => boolean): Promise<void> {
    const end = performance.now() + MADE_MS;
    while (!holds()) {
      assert.ok(performance.now() < end, `${this.world.name}: no edition in ${MADE_MS} ms`);
      await pause(POLL_MS);
    }
  }

  /** Asserts that an edition is the rows of one time, and of no earlier one than it says or than that before it. */
  #check(edition: SeenEdition, before: SeenEdition | null): void {
    const { head, rows } = edition;
    const what = `${this.world.name}: edition ${head.sequence}`;
    const times = this.writers.map((writer, n) => {
      const time = writer.timeOf(rows);
      assert.ok(time, `${what} has rows of writer ${n} that no time had`);
      for (const [sequence, others] of this.#steps) {
        const other = others[n] ?? assert.fail();
        const [older, newer] = sequence < head.sequence ? [other, time] : [time, other];
        assert.ok(older.least <= newer.most, `${what} or ${sequence} is older than the one before`);
      }
      assert.ok(
        time.most >= writer.before(Date.parse(head.at)),
        `${what} lacks what was written before its time`,
      );
      return time;
    });
    const from = Math.max(...times.map((time) => time.from));
    const until = Math.min(...times.map((time) => time.until));
    assert.ok(from <= until, `${what} has rows of two times, ${from - until} ms apart`);
    for (const id of rows.keys())
      assert.ok(id === 'expires' || this.writers.some(({ script }) => script.owns(id)), `${what} has ${id}`);
    this.#steps.set(head.sequence, times);
    if (!before) return;
    if (head.deltas.length === 0) this.anew++;
    const names = new Set(edition.chunks.map(({ name }) => name));
    for (const name of untouchedChunks(before, edition))
      assert.ok(names.has(name), `${what} lacks the chunk ${name}, in which nothing changed`);
  }

  async #editionOf(rows: ReadonlyMap<string, string>): Promise<SeenEdition> {
    const lines = [...rows.values()];
    const end = performance.now() + MADE_MS;
    for (;;) {
      await this.servers.insist('/orders/edition', 'POST');
      const { body, url } = await this.servers.insist('/orders/edition');
      await this.watch.look(body, url);
      const found = this.watch.editions.get((JSON.parse(body.toString()) as EditionHead).edition);
      assert.ok(found);
      if (isDeepEqual([...found.rows.values()], lines)) return found;
      assert.ok(performance.now() < end, `${this.world.name}: no edition of the last rows`);
      await pause(POLL_MS);
    }
  }

  /** Asserts that a copy of an edition and the changes since its cursor are the rows. */
  async #follow(rows: ReadonlyMap<string, string>): Promise<void> {
    const lost = this.expiries.at(-1) ?? 0;
    const all = [...this.watch.editions.values()].filter(({ head }) => Date.parse(head.at) > lost);
    const step = Math.max(1, Math.floor(all.length / FOLLOWED));
    for (const { head, rows: begin } of all.filter((_, n) => n % step === 0)) {
      const copy = new Copy();
      copy.rows = new Map([...begin.values()].map((line) => [keyText(line), line]));
      copy.cursor = head.changes;
      const [url = ''] = this.servers.urls();
      const answer = await copy.read(url + copy.next('/orders/stream'), { until: (one) => one.isUpToDate });
      assert.equal(answer.status, 200, answer.problem);
      assert.deepEqual(
        [...copy.rows.values()].toSorted(),
        [...rows.values()].toSorted(),
        `${this.world.name}: edition ${head.sequence} and its changes`,
      );
    }
  }
}

const keyText = (line: string) => JSON.stringify((JSON.parse(line) as { readonly id: string }).id);

function isDeepEqual(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((line, n) => line === right[n]);
}
