import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { Bucket } from '../../../../src/store/bucket/client.ts';
import { readFilesPlace, type BucketPlace } from '../../../../src/store/bucket/place.ts';
import { BucketConnection } from '../../../../src/store/bucket/request.ts';
import { ADMIN, type Seaweed } from './seaweed.ts';

export { PART_BYTES } from '../../../../src/store/bucket/writer.ts';

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

const BUCKET = 'test-bucket';
const made = new WeakMap<Seaweed, Promise<void>>();

/**
 * The setting FILES for a prefix that no other test has, in the bucket of a store, which is made once: each takes seven volumes.
 * `endpoint`: of a proxy in front of the store.
 */
export async function newFiles(seaweed: Seaweed, endpoint = seaweed.endpoint): Promise<string> {
  if (!made.has(seaweed)) made.set(seaweed, makeBucket(seaweed));
  await made.get(seaweed);
  return filesAt(BUCKET, endpoint, `some/${randomBytes(6).toString('hex')}`);
}

async function makeBucket(seaweed: Seaweed): Promise<void> {
  const connection = new BucketConnection(placeOf({ FILES: filesAt(BUCKET, seaweed.endpoint) }));
  await connection.ask({ method: 'PUT', key: '' });
  connection.close();
}

/** A new place in a real store. null: that can't run here, and the test is skipped. */
export async function testBucket(
  t: TestContext,
  start: (t: TestContext) => Promise<Seaweed | null>,
): Promise<BucketPlace | null> {
  const seaweed = await start(t);
  return seaweed && placeOf({ FILES: await newFiles(seaweed) });
}

/** A function that lists all keys at a place, and those of uploads that are not complete. */
export function keysAt(t: TestContext, FILES: string): () => Promise<readonly string[]> {
  const place = placeOf({ FILES });
  const bucket = new Bucket(place);
  t.after(() => {
    bucket.close();
  });
  return async () => {
    const keys = (await bucket.uploads(place.prefix)).map(({ key }) => `${key} (upload)`);
    for await (const { key } of bucket.list(place.prefix)) keys.push(key);
    return keys;
  };
}

/** A function that stores a file that no export needs beside one of a key, and resolves with its key. */
export function straysAt(t: TestContext, FILES: string): (key: string) => Promise<string> {
  const bucket = new Bucket(placeOf({ FILES }));
  t.after(() => {
    bucket.close();
  });
  return async (key) => {
    const beside = key.replace(/[^/]+$/, `${randomBytes(16).toString('hex')}.aaaa`);
    await bucket.put(beside, Buffer.from('of an export that is gone'));
    return beside;
  };
}

/** Replaces all files at a place by as many other bytes. */
export async function spoil(FILES: string): Promise<void> {
  const place = placeOf({ FILES });
  const bucket = new Bucket(place);
  for await (const { key, size } of bucket.list(place.prefix)) await bucket.put(key, Buffer.alloc(size, 'x'));
  bucket.close();
}
