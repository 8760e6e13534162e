import { RecentMap } from '../../base/recent-map.ts';
import { isFileName, type FileStore, type FileWriter } from '../files.ts';
import { Bucket, type BucketOptions } from './client.ts';
import { BucketFaults } from './faults.ts';
import type { BucketPlace } from './place.ts';
import { readStretch } from './read.ts';
import { BucketWriter } from './writer.ts';

/** Each listing is a request that the provider may charge for. Milliseconds. */
const LISTING_MS = 60_000;
/** How long the size of a file is believed: a file that somebody else has removed is linked to for so long. Milliseconds. */
const SIZE_MS = 5_000;
const MOST_SIZES = 1_000;
const FAULTS = new BucketFaults('export files');

interface BucketFilesOptions extends BucketOptions {
  /**
   * Tells this store's files from those of other stores in the bucket: letters and digits. null: there are none yet.
   */
  readonly folder: () => Promise<string | null>;
}

/**
 * Files of exports in a bucket, below `exports/` and the id of their store: a server removes files that its own store does
 * not know, and never those of another one.
 */
export class BucketFiles implements FileStore {
  readonly listingMs = LISTING_MS;
  readonly #place: BucketPlace;
  readonly #bucket: Bucket;
  readonly #probe: Bucket;
  readonly #findFolder: () => Promise<string | null>;
  #folder: string | null = null;
  /** A finished file never changes, so many downloads of one are one look. */
  readonly #sizes = new RecentMap<{ readonly size: number; readonly at: number }>(MOST_SIZES);

  constructor(place: BucketPlace, { folder, ...options }: BucketFilesOptions) {
    this.#place = place;
    this.#findFolder = folder;
    this.#bucket = new Bucket(place, options);
    this.#probe = new Bucket(place, { ...options, retryMs: 0, idleMs: 2_000 });
  }

  async create(name: string, signal?: AbortSignal): Promise<FileWriter> {
    await this.remove(name);
    const writer = new BucketWriter(this.#bucket, await this.#keyOf(name), signal);
    return {
      write: (bytes) => FAULTS.told(writer.write(bytes)),
      finish: () => FAULTS.told(writer.finish()),
      close: () => writer.close(),
    };
  }

  async *read(name: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    const key = await this.#keyOf(name);
    yield* readStretch(this.#bucket, FAULTS, { key, name, start, end });
  }

  async size(name: string): Promise<number | null> {
    if (!isFileName(name)) return null;
    const key = await this.#keyOf(name);
    const known = this.#sizes.get(key);
    if (known !== undefined && performance.now() - known.at < SIZE_MS) return known.size;
    const size = await FAULTS.told(this.#bucket.size(key));
    if (size !== null) this.#sizes.set(key, { size, at: performance.now() });
    return size;
  }

  async remove(name: string): Promise<void> {
    const key = await this.#keyOf(name);
    await FAULTS.told(this.#remove(key));
    this.#sizes.set(key, { size: 0, at: -Infinity });
  }

  async names(stem?: string): Promise<readonly string[]> {
    const folder = await this.#ownFolder();
    if (folder === null) return [];
    const keys = await FAULTS.told(this.#keys(stem === undefined ? folder : `${folder}${stem}.`));
    return [...keys].map((key) => key.slice(folder.length)).filter(isFileName);
  }

  link(name: string, { seconds, headers }: Parameters<NonNullable<FileStore['link']>>[1]): string {
    if (this.#folder === null) throw new TypeError('a link to a file that was not looked for');
    return this.#bucket.link(this.#folder + checked(name), seconds, headers);
  }

  async ping(): Promise<void> {
    await FAULTS.told(this.#probe.list(this.#place.prefix, 1).next());
  }

  close(): void {
    this.#bucket.close();
    this.#probe.close();
  }

  async #ownFolder(): Promise<string | null> {
    const found = this.#folder === null ? await this.#findFolder() : null;
    if (found !== null) this.#folder = `${this.#place.prefix}exports/${found}/`;
    return this.#folder;
  }

  async #keyOf(name: string): Promise<string> {
    const folder = await this.#ownFolder();
    if (folder === null) throw FAULTS.unavailable(new Error('the store has no exports yet'));
    return folder + checked(name);
  }

  async #remove(key: string): Promise<void> {
    await this.#bucket.abort(key);
    await this.#bucket.remove(key);
  }

  async #keys(prefix: string): Promise<ReadonlySet<string>> {
    const keys = new Set((await this.#bucket.uploads(prefix)).map(({ key }) => key));
    for await (const { key } of this.#bucket.list(prefix)) keys.add(key);
    return keys;
  }
}

function checked(name: string): string {
  if (!isFileName(name)) throw new TypeError(`not a file's name: ${JSON.stringify(name)}`);
  return name;
}
