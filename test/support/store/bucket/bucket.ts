import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { readFilesPlace, type BucketPlace } from '../../../../src/store/bucket/place.ts';
import { BucketConnection } from '../../../../src/store/bucket/request.ts';
import { ADMIN, type Seaweed } from './seaweed.ts';

/** The setting FILES for a bucket at an endpoint. */
export function filesAt(bucket: string, endpoint: string, prefix = 'some/prefix'): string {
  return `s3://${bucket}/${prefix}?endpoint=${encodeURIComponent(endpoint)}&region=eu-test-1`;
}

/** The place that these settings name. */
export function placeOf(settings: Readonly<Record<string, string>>): BucketPlace {
  const { place, faults } = readFilesPlace({ ...ADMIN, ...settings });
  if (place?.kind !== 'bucket') throw new Error(faults.join('\n'));
  return place;
}

/** Makes a bucket of a name that no other test has. */
export async function makeBucket(seaweed: Seaweed): Promise<string> {
  const bucket = `test-${randomBytes(6).toString('hex')}`;
  const connection = new BucketConnection(placeOf({ FILES: filesAt(bucket, seaweed.endpoint) }));
  await connection.ask({ method: 'PUT', key: '' });
  connection.close();
  return bucket;
}

/** A new bucket of a real store. null: that can't run here, and the test is skipped. */
export async function testBucket(
  t: TestContext,
  start: (t: TestContext) => Promise<Seaweed | null>,
): Promise<BucketPlace | null> {
  const seaweed = await start(t);
  return seaweed && placeOf({ FILES: filesAt(await makeBucket(seaweed), seaweed.endpoint) });
}
