import type { Bucket } from './client.ts';
import type { BucketFaults } from './faults.ts';

/** How often a read goes on behind a cut at which no byte came. */
const MOST_CUTS = 5;

/** A stretch of a file, and the name by which errors call it. */
interface Stretch {
  readonly key: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** Yields the bytes of a file in a bucket, and goes on behind a cut. Throws FileGoneError when bytes are missing. */
export async function* readStretch(
  bucket: Bucket,
  faults: BucketFaults,
  { key, name, start, end }: Stretch,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = start;
  for (let cuts = 0; at < end; cuts++) {
    const response = await faults.told(bucket.get(key, at, end), name);
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        at += chunk.length;
        cuts = 0;
        yield chunk;
      }
    } catch (error) {
      if (cuts >= MOST_CUTS) throw faults.unavailable(error);
    } finally {
      response.destroy();
    }
  }
}
