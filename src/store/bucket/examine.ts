import { randomBytes } from 'node:crypto';
import type { Finding } from '../../base/finding.ts';
import { Bucket } from './client.ts';
import type { BucketPlace } from './place.ts';
import { BucketError } from './request.ts';

type Look = readonly [promise: string, seen: string, holds: () => Promise<boolean>];

const RETRY_MS = 2_000;

/** Puts a file into the bucket, reads it and removes it. Reports which promises about files of exports hold there. */
export async function examineBucket(place: BucketPlace, report: (finding: Finding) => void): Promise<void> {
  const bucket = new Bucket(place, { retryMs: RETRY_MS });
  try {
    for (const [promise, seen, holds] of looksAt(
      bucket,
      `${place.prefix}exports/doctor/${randomBytes(8).toString('hex')}`,
    ))
      report({ promise, ...(await answerOf(seen, holds)) });
  } finally {
    bucket.close();
  }
}

function looksAt(bucket: Bucket, key: string): readonly Look[] {
  const bytes = randomBytes(1_000);
  return [
    ['files of exports can be stored in the bucket', 'PutObject', () => bucket.put(key, bytes)],
    [
      'a file is stored only if there is none',
      'PutObject with If-None-Match: *, where a file is',
      async () => !(await bucket.put(key, bytes, { isNew: true })),
    ],
    [
      'files can be read by ranges',
      'GetObject with Range',
      async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of (await bucket.get(key, 10, 20)) as AsyncIterable<Buffer>)
          chunks.push(chunk);
        return Buffer.concat(chunks).equals(bytes.subarray(10, 20));
      },
    ],
    ['files can be listed', 'ListObjectsV2', async () => (await bucket.size(key)) === bytes.length],
    [
      'what a killed server leaves is found and removed',
      'CreateMultipartUpload, ListMultipartUploads, AbortMultipartUpload',
      async () => {
        const { id } = await bucket.begin(key);
        const isListed = (await bucket.uploads(key)).some((one) => one.id === id);
        await bucket.abort(key);
        return isListed && (await bucket.uploads(key)).length === 0;
      },
    ],
    [
      'files can be removed',
      'DeleteObject',
      async () => {
        await bucket.remove(key);
        return (await bucket.size(key)) === null;
      },
    ],
  ];
}

async function answerOf(seen: string, holds: () => Promise<boolean>): Promise<Omit<Finding, 'promise'>> {
  try {
    return { holds: await holds(), seen };
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    return { holds: false, seen: `${seen}: ${error.message}` };
  }
}
