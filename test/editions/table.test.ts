import assert from 'node:assert/strict';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { Int32 } from '../../src/store/values/bson.ts';
import { EditionMaker, rowsOfEdition } from '../support/editions/edition-maker.ts';
import { MemoryObjects } from '../support/editions/memory-objects.ts';
import { assertParquet, versionsOf } from '../support/editions/table-files.ts';
import { twoHandles } from '../support/exports/export-worker.ts';
import { onStores } from '../support/process/each-server.ts';
import { makeItem } from '../support/store/items.ts';
import { NEVER } from '../support/store/reading.ts';

const BOTH = { formats: ['ndjson.gz', 'parquet'] } as const;
const row = (id: number, note: string) => makeItem(new Int32(id), 'b', new Int32(1), note).bytes;

onStores(
  async (t, name) => {
    const handles = await twoHandles(t, name);
    if (!handles) return null;
    const objects = new MemoryObjects();
    const { items } = handles[0].store;
    await items.insert(
      Array.from({ length: 30 }, (_, n) => row(n, 'first')),
      'fail',
    );
    const maker = await EditionMaker.open(handles[0], objects);
    const puts: string[] = [];
    objects.before = (path) => void puts.push(path);
    /** Makes an edition, and resolves with its head and the files that were put for it. */
    const make = async (form: Partial<ReturnType<typeof maker.source>['form']> = BOTH) => {
      puts.length = 0;
      await maker.make(form);
      const head = await maker.head();
      assert.ok(head);
      return { head, puts: [...puts] };
    };
    return { objects, items, maker, make };
  },
  (testStore) => {
    testStore(
      'chunks have the columns of the first edition, and versions of the table its numbers',
      async ({ items, maker, make }) => {
        const first = await make();
        assert.match(first.head.schema ?? '', /^[0-9a-f]{16}$/);
        await assertParquet(first.head, maker);
        await items.insert([makeItem(new Int32(7), 'b', new Int32(1), 'x').bytes, row(99, 'new')], 'replace');
        const second = await make();
        assert.equal(second.head.schema, first.head.schema);
        await assertParquet(second.head, maker);
        await rowsOfEdition(second.head, maker.files());
        assert.deepEqual(await versionsOf(maker), [0, second.head.sequence]);
        assert.deepEqual(maker.warnings, []);
      },
    );

    testStore(
      'rows that come behind the look at a collection without rows have columns',
      async ({ items, maker, make }) => {
        await items.remove(Array.from({ length: 30 }, (_, n) => makeBookmark({ _id: new Int32(n) })));
        let isEmpty = true;
        maker.hooks = {
          reads: async () => {
            if (isEmpty) await items.insert([row(1, 'first'), row(2, 'second')], 'fail');
            isEmpty = false;
          },
        };
        const { head } = await make();
        assert.equal(head.rows, 2);
        const { tables } = await maker.records.get('items', NEVER);
        assert.deepEqual(
          tables.map(({ schema }) => schema.columns.map(({ name }) => name)),
          [['id', 'category', 'price', 'note']],
        );
        await assertParquet(head, maker);
      },
    );

    testStore(
      'other declared kinds make chunks of Parquet anew, and none of NDJSON',
      async ({ maker, make }) => {
        const first = await make();
        maker.kinds = new Map([['price', 'decimal']]);
        const { head, puts } = await make();
        assert.notEqual(head.schema, first.head.schema);
        assert.equal(head.edition, first.head.edition);
        assert.equal(head.sequence, 1, 'another version of the table');
        await assertParquet(head, maker);
        assert.deepEqual(
          puts.filter((path) => path.endsWith('.ndjson.gz')),
          [],
        );
        assert.deepEqual(await versionsOf(maker), [1], 'it begins anew');
        const again = await make();
        assert.equal(again.head.sequence, 1);
        assert.deepEqual(
          again.puts.filter((path) => /_delta_log|parquet$/.test(path)),
          [],
        );
      },
    );

    testStore(
      'with one edition kept, each version is whole, and the only one that readers find',
      async ({ items, maker }) => {
        for (const note of ['first', 'second', 'third']) {
          await items.insert([row(5, note)], 'replace');
          await maker.make({ ...BOTH, keep: 1 });
          const head = (await maker.head()) ?? assert.fail();
          await assertParquet(head, maker);
          assert.deepEqual([head.kept, head.deltas], [[], []]);
          assert.deepEqual(await versionsOf(maker), [head.sequence]);
        }
        assert.equal((await maker.head())?.sequence, 2);
      },
    );

    testStore('a format that is declared later is made of chunks that are there', async ({ maker, make }) => {
      const first = await make({});
      assert.equal(first.head.schema, undefined);
      assert.deepEqual(await versionsOf(maker), []);
      const { head, puts } = await make();
      await assertParquet(head, maker);
      assert.deepEqual(
        puts.filter((path) => path.endsWith('.ndjson.gz')),
        [],
      );
      assert.deepEqual(await versionsOf(maker), [head.sequence]);
    });

    testStore(
      'a kill between the record and the log is made up for, and one before leaves the table as it was',
      async ({ objects, items, maker, make }) => {
        await make();
        await items.insert([row(5, 'second')], 'replace');
        let dies: RegExp | null = /\/edition\/[0-9a-f]{64}\.json$/;
        objects.before = (path) => {
          if (dies?.test(path)) throw new Error('killed');
        };
        await maker.make(BOTH);
        assert.equal((await maker.head())?.sequence, 0);
        assert.deepEqual(await versionsOf(maker), [0]);
        dies = /_delta_log/;
        await maker.make(BOTH);
        assert.equal((await maker.head())?.sequence, 1);
        assert.deepEqual(await versionsOf(maker), [0]);
        dies = null;
        await items.insert([row(5, 'third')], 'replace');
        await maker.make(BOTH);
        assert.deepEqual(await versionsOf(maker), [0, 1, 2]);
      },
    );

    testStore(
      'a table that another program wrote into is told of once, and editions go on',
      async ({ objects, items, maker, make }) => {
        await make();
        const foreign = Buffer.from(
          `${JSON.stringify({ commitInfo: { timestamp: 1, edition: 'other' } })}\n`,
        );
        await objects.put(`items/_delta_log/${'2'.padStart(20, '0')}.json`, foreign);
        for (const note of ['second', 'third', 'fourth']) {
          await items.insert([row(5, note)], 'replace');
          const { head } = await make();
          await rowsOfEdition(head, maker.files());
        }
        assert.equal((await maker.head())?.sequence, 3);
        assert.equal(maker.errors.length, 1);
        assert.match(String((maker.errors[0] as { readonly err: Error }).err), /Remove this folder/);
      },
    );
  },
);
