import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { EditionHead } from '../../../src/base/edition/head.ts';
import { bookmarkOf } from '../../../src/store/bookmark.ts';
import { Int32 } from '../../../src/store/values/bson.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { EditionMaker, rowsOfEdition } from '../../support/editions/edition-maker.ts';
import { DeltaReaders } from '../../support/editions/delta/readers.ts';
import { assertRows } from '../../support/editions/delta/reading.ts';
import { MemoryObjects } from '../../support/editions/memory-objects.ts';
import { twoHandles } from '../../support/exports/export-worker.ts';
import { onStores } from '../../support/process/each-server.ts';
import { makeItem } from '../../support/store/items.ts';

const FORM = { formats: ['ndjson.gz', 'parquet'], keep: 3 } as const;
const ROWS = 40;
/** More than the steps of an edition here: the last attempts are not killed. */
const MOST_STEPS = 60;

/** The first step of an edition that stores a chunk, and so on: a kill at each of some, the last ones around the commit. */
const isKillAt = (step: number) => step < 4 || step % 3 === 0;

onStores(
  async (t, name) => {
    const readers = await DeltaReaders.start(t);
    const handles = readers && (await twoHandles(t, name));
    if (!handles) return null;
    const objects = new MemoryObjects();
    const makers = await Promise.all(handles.map((handle) => EditionMaker.open(handle, objects)));
    const [maker, other] = makers;
    assert.ok(maker && other);
    return {
      readers,
      items: handles[0].store.items,
      objects,
      maker,
      other,
      folder: await temporaryFolder(t),
    };
  },
  (testStore) => {
    testStore(
      'a builder that is killed at any step leaves the table before it, and another one goes on',
      async ({ readers, items, objects, maker, other, folder }, t) => {
        for (let n = 0; n < ROWS; n++) await items.insert([rowOf(n, 0)], 'replace');
        await maker.make(FORM);
        const table = new TableOfMaker(readers, objects, maker, folder);
        let isKilled = true;
        let kills = 0;
        for (let step = 1; isKilled && step < MOST_STEPS; step++) {
          if (!isKillAt(step)) continue;
          await items.remove([bookmarkOf(rowOf(step % ROWS, 0), { sort: '_id' })]);
          for (const n of [3, 17, 31]) await items.insert([rowOf((step + n) % ROWS, step)], 'replace');
          const version = table.version();
          let steps = step;
          objects.before = () => {
            if (steps-- <= 0) throw new Error('killed');
          };
          await maker.make(FORM);
          objects.before = () => undefined;
          isKilled = steps < 0;
          if (isKilled) kills++;
          if (table.version() === version) await table.assertVersions(version, 'killed before its commit');
          other.time = maker.time;
          await other.make(FORM);
          maker.time = other.time;
          assert.ok(table.version() > version, 'the other builder went on');
          await table.assertVersions(table.version(), 'made by another builder');
        }
        assert.equal(isKilled, false, 'the last attempt had all its steps');
        t.diagnostic(`${kills} kills`);
      },
    );

    testStore(
      'a builder that wakes up behind another one writes no version in its place',
      async ({ readers, items, objects, maker, other, folder }) => {
        const table = new TableOfMaker(readers, objects, maker, folder);
        await items.insert([rowOf(1, 100)], 'replace');
        await maker.make(FORM);
        await items.insert([rowOf(1, 101)], 'replace');
        let wake = (): void => undefined;
        const asleep = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const reached = new Promise<void>((resolve) => {
          objects.before = async (path) => {
            if (!path.includes('_delta_log')) return;
            objects.before = () => undefined;
            resolve();
            await asleep;
          };
        });
        const sleeping = maker.make(FORM);
        await reached;
        await items.insert([rowOf(2, 102)], 'replace');
        other.time = maker.time;
        await other.make(FORM);
        const version = table.version();
        await table.assertVersions(version, 'made by the second writer');
        wake();
        await sleeping;
        assert.equal(table.version(), version);
        await table.assertVersions(version, 'the first one woke up');
        assert.deepEqual([...maker.errors, ...other.errors], []);
      },
    );
  },
);

function rowOf(n: number, change: number): Uint8Array {
  return makeItem(new Int32(n), 'b', new Int32(change), `row ${n} ${'x'.repeat(100)}`).bytes;
}

/** The table of editions in memory, as readers find it in a folder. */
class TableOfMaker {
  readonly #readers: DeltaReaders;
  readonly #objects: MemoryObjects;
  readonly #maker: EditionMaker;
  readonly #folder: string;

  constructor(readers: DeltaReaders, objects: MemoryObjects, maker: EditionMaker, folder: string) {
    this.#readers = readers;
    this.#objects = objects;
    this.#maker = maker;
    this.#folder = folder;
  }

  /** The newest version. */
  version(): number {
    const versions = [...this.#objects.all.keys()].flatMap(
      (path) => /_delta_log\/(\d{20})\.json$/.exec(path)?.[1] ?? [],
    );
    return Math.max(...versions.map(Number));
  }

  /** Asserts that the newest version and the one before are the editions of these numbers. */
  async assertVersions(version: number, when: string): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    for (const [path, { bytes }] of this.#objects.all) {
      await mkdir(dirname(join(this.#folder, path)), { recursive: true });
      await writeFile(join(this.#folder, path), bytes);
    }
    await this.#assertVersion(null, version, when);
    if (version > 0) await this.#assertVersion(version - 1, version - 1, when);
  }

  async #assertVersion(asked: number | null, sequence: number, when: string): Promise<void> {
    const head = await this.#headOf(sequence);
    const { tables } = await this.#maker.records.get('items', new AbortController().signal);
    const schema = tables.find((one) => one.schema.name === head.schema)?.schema;
    assert.ok(schema);
    const lines = (await rowsOfEdition(head, this.#maker.files())).toString().split('\n').slice(0, -1);
    const place = { uri: join(this.#folder, 'items'), options: {}, scratch: this.#folder };
    const rows = new Map(lines.map((line, n) => [`${n}`, line]));
    await assertRows(this.#readers, place, asked, { rows, schema }).catch((error: unknown) => {
      throw new Error(`version ${asked ?? 'newest'}, ${when}`, { cause: error });
    });
  }

  /** The head of the edition of a number, newest or kept. */
  async #headOf(sequence: number): Promise<EditionHead> {
    for (const [path, { bytes }] of this.#objects.all) {
      if (!path.startsWith('items/edition/')) continue;
      const head = JSON.parse(Buffer.from(bytes).toString()) as EditionHead;
      const isOfRecord = (await this.#isCommitted(head.edition)) && head.sequence === sequence;
      if (isOfRecord) return head;
    }
    throw new Error(`there is no edition ${sequence}`);
  }

  async #isCommitted(edition: string): Promise<boolean> {
    const newest = await this.#maker.head();
    return newest?.edition === edition || newest?.kept.some((one) => one.edition === edition) === true;
  }
}
