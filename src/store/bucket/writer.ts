import { createHash, type Hash } from 'node:crypto';
import type { FileWriter } from '../files.ts';
import type { Bucket, Upload } from './client.ts';
import { BucketError } from './request.ts';

/**
 * The size of every part but the last, since some stores want them equal. A file has at most 10,000 parts, so 78 GiB. A file
 * that is smaller than a part is stored by one request.
 */
export const PART_BYTES = 8 * 1024 * 1024;

/** Parts that are on their way while another one is filled: more bring nothing, and each takes its memory. */
const IN_FLIGHT = 3;

/** Writes one file by parts: `IN_FLIGHT` of them and the one that is filled are all its memory. */
export class BucketWriter implements FileWriter {
  readonly #bucket: Bucket;
  readonly #key: string;
  readonly #signal: AbortSignal | undefined;
  readonly #etags: string[] = [];
  #upload: Upload | null = null;
  #filling = Buffer.allocUnsafeSlow(PART_BYTES);
  readonly #spare: Buffer<ArrayBuffer>[] = [];
  #filled = 0;
  #bytes = 0;
  #hash: Hash = createHash('md5');
  #parts = 0;
  readonly #sending = new Set<Promise<void>>();
  /** Why a part could not be sent. null: all could. */
  #failure: { readonly error: unknown } | null = null;

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
    await this.#sent(0);
  }

  /** Resolves when there is room for the next part. Rejects when this one, or one before, could not be sent. */
  async #send(): Promise<void> {
    await this.#sent(IN_FLIGHT - 1);
    if (this.#failure) throw this.#failure.error;
    const upload = (this.#upload ??= await this.#bucket.begin(this.#key, this.#signal));
    const part = this.#filling;
    const md5 = this.#hash.digest('base64');
    const sending = this.#sendPart(upload, this.#parts++, part, this.#filled, md5);
    this.#sending.add(sending);
    void sending.then(() => this.#sending.delete(sending));
    this.#filling = this.#spare.pop() ?? Buffer.allocUnsafeSlow(PART_BYTES);
    this.#filled = 0;
    this.#hash = createHash('md5');
  }

  /** Never rejects: the next write, or the end, does. */
  async #sendPart(
    upload: Upload,
    n: number,
    part: Buffer<ArrayBuffer>,
    length: number,
    md5: string,
  ): Promise<void> {
    try {
      const body = part.subarray(0, length);
      this.#etags[n] = await this.#bucket.part(upload, n + 1, body, { md5, signal: this.#signal });
      this.#spare.push(part);
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  /** Resolves when at most so many parts are on their way. */
  async #sent(most: number): Promise<void> {
    while (this.#sending.size > most) await Promise.race(this.#sending);
  }

  async #complete(upload: Upload): Promise<void> {
    await this.#send();
    await this.#sent(0);
    if (this.#failure) throw this.#failure.error;
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
