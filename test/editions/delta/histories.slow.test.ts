import assert from 'node:assert/strict';
import { join } from 'node:path';
import { tableSchema } from '../../../src/editions/delta/schema.ts';
import { Bucket } from '../../../src/store/bucket/client.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { bucketObjects, folderObjects, noPuts } from '../../support/editions/delta/objects.ts';
import { DeltaReaders } from '../../support/editions/delta/readers.ts';
import { assertRows, assertTable, type TablePlace } from '../../support/editions/delta/reading.ts';
import { changedRows, COLUMNS } from '../../support/editions/delta/rows.ts';
import { TestTable, type MadeEdition } from '../../support/editions/delta/table.ts';
import { SEED } from '../../support/seed.ts';
import { newFiles, placeOf } from '../../support/store/bucket/bucket.ts';
import { ADMIN, Seaweed } from '../../support/store/bucket/seaweed.ts';
import { below, oneOf, randomFrom, type Random } from '../../support/store/random-collection.ts';
import { shared, testsWith } from '../../support/tests-with.ts';

const startReaders = shared((t) => DeltaReaders.start(t));
const withReaders = testsWith(startReaders);
const withBucket = testsWith(async (t) => {
  const readers = await startReaders(t);
  const seaweed = readers && (await Seaweed.start(t));
  if (!readers || !seaweed) return null;
  const place = placeOf({ FILES: await newFiles(seaweed) });
  const bucket = new Bucket(place);
  t.after(() => {
    bucket.close();
  });
  const options = {
    AWS_ENDPOINT_URL: seaweed.endpoint,
    AWS_ACCESS_KEY_ID: ADMIN.S3_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY: ADMIN.S3_SECRET_ACCESS_KEY,
    AWS_REGION: place.region,
    AWS_ALLOW_HTTP: 'true',
  };
  return {
    readers,
    objects: bucketObjects(bucket, place),
    uri: `s3://${place.bucket}/${place.prefix}`,
    options,
  };
});

withReaders(
  `fifty random histories are read from a folder as they were (seed ${SEED})`,
  async (readers, t) => {
    const scratch = await temporaryFolder(t);
    const objects = folderObjects(scratch);
    for (let n = 0; n < 50; n++) {
      const random = randomFrom(SEED + n);
      const table = new TestTable(objects, `things${n}`, tableSchema(COLUMNS), 1 + below(random, 3));
      await makeHistory(readers, { uri: join(scratch, table.resource), options: {}, scratch }, table, random);
    }
  },
);

withBucket(
  `ten of them are read from a bucket of several nodes (seed ${SEED})`,
  async ({ readers, objects, uri, options }, t) => {
    const scratch = await temporaryFolder(t);
    for (let n = 0; n < 10; n++) {
      const random = randomFrom(SEED + n);
      const table = new TestTable(objects, `things${n}`, tableSchema(COLUMNS), 1 + below(random, 3));
      await makeHistory(readers, { uri: uri + table.resource, options, scratch }, table, random);
    }
  },
);

withBucket(
  'a table in a bucket is read behind a checkpoint and removed commits',
  async ({ readers, objects, uri, options }, t) => {
    const random = randomFrom(SEED);
    const table = new TestTable(objects, 'things', tableSchema(COLUMNS), 2);
    let rows: ReadonlyMap<string, string> = new Map();
    for (let n = 0; n <= 103; n++) {
      rows = changedRows(rows, 1, random);
      await table.store(rows);
      await table.commit();
    }
    await table.sweep();
    assert.equal(await objects.get('things/_delta_log/00000000000000000099.json'), null);
    await assertTable(readers, { uri: `${uri}things`, options, scratch: await temporaryFolder(t) }, table);
  },
);

/** Makes some editions, by builders that die now and then, with schemas that change, and reads what there is. */
async function makeHistory(
  readers: DeltaReaders,
  place: TablePlace,
  table: TestTable,
  random: Random,
): Promise<void> {
  let rows: ReadonlyMap<string, string> = new Map();
  const steps = 1 + below(random, 6);
  let published: MadeEdition | undefined;
  for (let n = 0; n < steps; n++) {
    if (random() < 0.2)
      table.schema = tableSchema(
        [COLUMNS[0], ...COLUMNS.filter(() => random() < 0.7)].flatMap((one) => one ?? []),
      );
    rows = changedRows(rows, oneOf(random, [1, 3, 40, 200]), random);
    await table.store(rows);
    if (published && published === table.editions.at(-2) && random() < 0.3) {
      await assert.rejects(table.commit(noPuts(table.objects)), /killed/);
      await assertRows(readers, place, null, published);
      // With one kept edition, the next builder could not make up for it.
      if (table.keep > 1) continue;
    }
    await table.commit();
    await table.sweep();
    published = table.newest;
  }
  await table.commit();
  await assertTable(readers, place, table);
}
