import { createHash, type Hash } from 'node:crypto';
import type { FileWriter } from '../files.ts';
import type { Bucket, Upload } from './client.ts';
import { BucketError } from './request.ts';

/**
 * The size of every part but the last, since some stores want them equal. A file has at most 10,000 parts, so 78 GiB. A file
 * that is smaller than a part is stored by one request.
 */
export const PART_BYTES = 8 * 1024 * 1024;

/** Writes one file: a part is sent while the next one is filled, so that two of them are all its memory. */
export class BucketWriter implements FileWriter {
  readonly #bucket: Bucket;
  readonly #key: string;
  readonly #signal: AbortSignal | undefined;
  readonly #etags: string[] = [];
  #upload: Upload | null = null;
  #filling = Buffer.allocUnsafeSlow(PART_BYTES);
  #spare: Buffer<ArrayBuffer> | null = null;
  #filled = 0;
  #bytes = 0;
  #hash: Hash = createHash('md5');
  /** The part that is on its way. */
  #sending: Promise<void> = Promise.resolve();

  constructor(bucket: Bucket, key: string, signal?: AbortSignal) {
    this.#bucket = bucket;
    this.#key = key;
    this.#signal = signal;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      if (this.#filled === PART_BYTES) await this.#send(); // here, not when it is full: the last part may be a full one
      const piece = bytes.subarray(at, at + PART_BYTES - this.#filled);
      this.#filling.set(piece, this.#filled);
      this.#hash.update(piece);
      this.#filled += piece.length;
      this.#bytes += piece.length;
      at += piece.length;
    }
  }

  async finish(): Promise<void> {
    if (this.#upload) return this.#complete(this.#upload);
    const body = this.#filling.subarray(0, this.#filled);
    await this.#bucket.put(this.#key, body, { md5: this.#hash.digest('base64'), signal: this.#signal });
  }

  async close(): Promise<void> {
    await this.#sending.catch(() => undefined); // whoever wrote was told
  }

  /** Resolves when there is room for the next part. */
  async #send(): Promise<void> {
    await this.#sending;
    const upload = (this.#upload ??= await this.#bucket.begin(this.#key, this.#signal));
    const part = this.#filling;
    const body = part.subarray(0, this.#filled);
    const md5 = this.#hash.digest('base64');
    const number = this.#etags.length + 1;
    this.#sending = this.#bucket.part(upload, number, body, { md5, signal: this.#signal }).then((etag) => {
      this.#etags.push(etag);
      this.#spare = part;
    });
    this.#sending.catch(() => undefined); // the next write, or the end, rejects with it
    this.#filling = this.#spare ?? Buffer.allocUnsafeSlow(PART_BYTES);
    this.#spare = null;
    this.#filled = 0;
    this.#hash = createHash('md5');
  }

  async #complete(upload: Upload): Promise<void> {
    await this.#send();
    await this.#sending;
    try {
      await this.#bucket.complete(upload, this.#etags, this.#signal);
    } catch (error) {
      // The answer to an earlier try may have been lost: the upload is then gone, and the file is there.
      const isDone = error instanceof BucketError && error.code === 'NoSuchUpload';
      if (!isDone || (await this.#bucket.size(this.#key)) !== this.#bytes) throw error;
    }
    // One whose answer was lost was begun again. No list of leftovers would name it: its key is that of a file in use.
    await this.#bucket.abort(this.#key);
  }
}
