import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
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
import { SEED } from '../../support/seed.ts';
import { makeItem } from '../../support/store/items.ts';
import { below, randomFrom } from '../../support/store/random-collection.ts';

const ROUNDS = 8;

onStores(
  async (t, name) => {
    const readers = await DeltaReaders.start(t);
    const handles = readers && (await twoHandles(t, name));
    if (!handles) return null;
    const objects = new MemoryObjects();
    const maker = await EditionMaker.open(handles[0], objects);
    return { readers, items: handles[0].store.items, objects, maker, t };
  },
  (testStore) => {
    testStore(
      `readers of the table give the rows of random editions and of kept ones (seed ${SEED})`,
      async ({ readers, items, objects, maker, t }) => {
        const random = randomFrom(SEED);
        for (let round = 0; round < ROUNDS; round++) {
          for (let n = round === 0 ? 60 : 1 + below(random, 9); n > 0; n--) {
            const { bytes } = makeItem(
              new Int32(below(random, 90)),
              'b',
              new Int32(below(random, 9)),
              `${random()}`,
            );
            if (below(random, 4) === 0) await items.remove([bookmarkOf(bytes, { sort: '_id' })]);
            else await items.insert([bytes], 'replace');
          }
          if (round === 5) maker.kinds = new Map([['price', 'decimal']]);
          let steps = below(random, 2) === 0 ? below(random, 20) : Infinity;
          objects.before = () => {
            if (steps-- === 0) throw new Error('killed');
          };
          await maker.make({ formats: ['ndjson.gz', 'parquet'] });
          objects.before = () => undefined;
        }
        await maker.make({ formats: ['ndjson.gz', 'parquet'] });
        const folder = await temporaryFolder(t);
        for (const [path, { bytes }] of objects.all) {
          await mkdir(dirname(join(folder, path)), { recursive: true });
          await writeFile(join(folder, path), bytes);
        }
        const place = { uri: join(folder, 'items'), options: {}, scratch: folder };
        const newest = await maker.head();
        assert.ok(newest);
        await assertVersion(readers, place, null, newest, maker);
        for (const { edition } of newest.kept) {
          const kept = await maker.files().head(edition);
          assert.ok(kept);
          await assertVersion(readers, place, kept.sequence, kept, maker);
        }
      },
    );
  },
);

async function assertVersion(
  readers: DeltaReaders,
  place: Parameters<typeof assertRows>[1],
  version: number | null,
  head: EditionHead,
  maker: EditionMaker,
): Promise<void> {
  const { tables } = await maker.records.get('items', new AbortController().signal);
  const schema = tables.find((one) => one.schema.name === head.schema)?.schema;
  assert.ok(schema);
  const lines = (await rowsOfEdition(head, maker.files())).toString().split('\n').slice(0, -1);
  await assertRows(readers, place, version, {
    rows: new Map(lines.map((line, n) => [`${n}`, line])),
    schema,
  });
}
