import { isObjectPath, type ObjectStore, type StoredObject } from '../objects.ts';
import { Bucket, type BucketOptions } from './client.ts';
import { BucketFaults } from './faults.ts';
import type { BucketPlace } from './place.ts';
import { readStretch } from './read.ts';

const FAULTS = new BucketFaults('files of editions');

interface BucketObjectsOptions extends BucketOptions {
  /** What all paths begin with behind the prefix of the place: with a slash at its end. */
  readonly folder: string;
  /** The headers with which the bucket is to serve an object. */
  readonly headersOf: (path: string) => Readonly<Record<string, string>>;
}

/** Objects in a bucket, each stored by one request. */
export class BucketObjects implements ObjectStore {
  readonly #bucket: Bucket;
  readonly #probe: Bucket;
  readonly #folder: string;
  readonly #headersOf: BucketObjectsOptions['headersOf'];

  constructor(place: BucketPlace, { folder, headersOf, ...options }: BucketObjectsOptions) {
    this.#bucket = new Bucket(place, options);
    this.#probe = new Bucket(place, { ...options, retryMs: 0, idleMs: 2_000 });
    this.#folder = place.prefix + folder;
    this.#headersOf = headersOf;
  }

  async put(path: string, bytes: Uint8Array, { isNew = false } = {}): Promise<boolean> {
    const how = { isNew, headers: this.#headersOf(path) };
    return FAULTS.told(this.#bucket.put(this.#keyOf(path), bytes, how));
  }

  async get(path: string): Promise<Uint8Array | null> {
    return FAULTS.told(this.#bucket.whole(this.#keyOf(path)));
  }

  async *read(path: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    yield* readStretch(this.#bucket, FAULTS, { key: this.#keyOf(path), name: path, start, end });
  }

  async size(path: string): Promise<number | null> {
    return FAULTS.told(this.#bucket.size(this.#keyOf(path)));
  }

  async *list(prefix: string): AsyncGenerator<StoredObject, void, undefined> {
    const found = this.#bucket.list(this.#folder + prefix);
    for (let next = await FAULTS.told(found.next()); !next.done; next = await FAULTS.told(found.next())) {
      const { key, size: bytes, storedAt } = next.value;
      const path = key.slice(this.#folder.length);
      if (isObjectPath(path)) yield { path, bytes, storedAt };
    }
  }

  async remove(path: string): Promise<void> {
    await FAULTS.told(this.#bucket.remove(this.#keyOf(path)));
  }

  async ping(): Promise<void> {
    await FAULTS.told(this.#probe.list(this.#folder, 1).next());
  }

  close(): void {
    this.#bucket.close();
    this.#probe.close();
  }

  #keyOf(path: string): string {
    if (!isObjectPath(path)) throw new TypeError(`not an object's path: ${JSON.stringify(path)}`);
    return this.#folder + path;
  }
}
