import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Faults } from '../../src/base/errors.ts';
import { openObjects } from '../../src/server/open-objects.ts';
import { temporaryFolder } from '../support/directory.ts';
import { testBucket } from '../support/store/bucket/bucket.ts';
import { Seaweed } from '../support/store/bucket/seaweed.ts';
import { shared, testsWith } from '../support/tests-with.ts';
import { objectsContract } from './objects.contract.ts';

const seaweed = shared((t) => Seaweed.start(t));

objectsContract(
  testsWith(async (t) => openObjects(null, join(await temporaryFolder(t), 'data')), 'a folder'),
);
objectsContract(
  testsWith(async (t) => {
    const place = await testBucket(t, seaweed);
    const objects = place && (await openObjects(place, null));
    t.after(() => objects?.close());
    return objects;
  }, 'a bucket'),
);

test('without a place for the files of editions the fault says which setting makes one', async () => {
  await assert.rejects(openObjects(null, null), (error: unknown) => {
    assert.ok(error instanceof Faults);
    assert.match(error.message, /^FILES is missing: .*file:\/\/\/FOLDER/);
    return true;
  });
});
