import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BucketPlace } from './place.ts';
import { BucketConnection, BucketError, type BucketRequest, type ConnectionOptions } from './request.ts';
import { completionOf, elementsOf, textOf } from './xml.ts';

/** How long a request is tried again. Milliseconds. */
const RETRY_MS = 30_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const NOT_IMPLEMENTED = 501;
const NOTHING = new Uint8Array(0);

/**
 * Answers after which the same request may succeed: the store is busy, bytes were changed on their way, our clock was off
 * (the next signature has the store's), or the credentials were (those of files are read again).
 */
const PASSING: ReadonlySet<string> = new Set([
  // another write of this key is under way
  ...['ConditionalRequestConflict', 'OperationAborted'],
  ...['BadDigest', 'XAmzContentSHA256Mismatch', 'IncompleteBody', 'RequestTimeout', 'SlowDown'],
  ...[
    'RequestTimeTooSkewed',
    'ExpiredToken',
    'InvalidToken',
    'TokenRefreshRequired',
    'InvalidAccessKeyId',
    'SignatureDoesNotMatch',
  ],
]);

export interface BucketOptions extends ConnectionOptions {
  /** How long a request is tried again. Milliseconds. 0: once. */
  readonly retryMs?: number;
}

interface PutOptions extends Pick<BucketRequest, 'md5' | 'signal' | 'headers'> {
  readonly isNew?: boolean;
}

interface ListedFile {
  readonly key: string;
  readonly size: number;
  /** By the clock of the bucket. Milliseconds since 1970. */
  readonly storedAt: number;
}

/** A file that is being put together from parts. */
export interface Upload {
  readonly key: string;
  readonly id: string;
}

/**
 * The operations on one bucket. Each is tried again while it may still succeed, and rejects with BucketError, or with the reason of
 * its signal. Each may be sent twice without harm: a part and a file are replaced by themselves.
 */
export class Bucket {
  readonly #connection: BucketConnection;
  readonly #retryMs: number;
  #isClosed = false;
  /** Whether nobody has found yet that the store refuses If-None-Match. */
  #knowsConditions = true;

  constructor(place: BucketPlace, { retryMs = RETRY_MS, ...options }: BucketOptions = {}) {
    this.#connection = new BucketConnection(place, options);
    this.#retryMs = retryMs;
  }

  /**
   * Stores a file. `isNew`: only if there is none. Resolves with whether it was stored. A store that does not know
   * If-None-Match is asked before: of two writers at once both may then store theirs.
   */
  async put(key: string, body: Uint8Array, { isNew = false, ...more }: PutOptions = {}): Promise<boolean> {
    const request = { method: 'PUT', key, body, ...more } as const;
    if (isNew && this.#knowsConditions) return this.#putUnlessThere(request);
    if (isNew && (await this.size(key)) !== null) return false;
    await this.#ask(request);
    return true;
  }

  async #putUnlessThere(request: BucketRequest & { readonly body: Uint8Array }): Promise<boolean> {
    const { key, body, headers, signal } = request;
    const conditional = { ...request, headers: { ...headers, 'If-None-Match': '*' } };
    let tries = 0;
    try {
      await this.#again(signal, () => {
        tries++;
        return this.#connection.ask(conditional);
      });
      return true;
    } catch (error) {
      const status = error instanceof BucketError ? error.status : 0;
      this.#knowsConditions &&= status !== NOT_IMPLEMENTED;
      if (status === NOT_IMPLEMENTED) return this.put(key, body, { ...request, isNew: true });
      if (status !== 412) throw error;
      // The answer to the try before may have been lost: then the file is ours.
      return tries > 1 && Buffer.compare((await this.whole(key)) ?? NOTHING, body) === 0;
    }
  }

  /** All bytes of a file. Null: there is none. */
  async whole(key: string): Promise<Uint8Array | null> {
    try {
      return await this.#again(undefined, () => this.#connection.fetch({ method: 'GET', key }));
    } catch (error) {
      if (error instanceof BucketError && error.code === 'NoSuchKey') return null;
      throw error;
    }
  }

  /** The bytes from `start`, inclusive, to `end`, exclusive, as the connection has them. */
  get(key: string, start: number, end: number): Promise<IncomingMessage> {
    const headers = { Range: `bytes=${start}-${end - 1}` };
    return this.#again(undefined, () => this.#connection.send({ method: 'GET', key, headers }));
  }

  async remove(key: string): Promise<void> {
    await this.#unlessMissing({ method: 'DELETE', key });
  }

  /** All files whose key has this beginning. `most`: only about so many. */
  async *list(prefix: string, most = 1_000): AsyncGenerator<ListedFile, void, undefined> {
    for (let token = ''; ;) {
      const query = {
        'list-type': '2',
        prefix,
        'max-keys': String(most),
        ...(token !== '' && { 'continuation-token': token }),
      };
      const xml = await this.#ask({ method: 'GET', key: '', query });
      for (const found of elementsOf(xml, 'Contents'))
        yield {
          key: textOf(found, 'Key'),
          size: Number(textOf(found, 'Size')),
          storedAt: Date.parse(textOf(found, 'LastModified')),
        };
      token = textOf(xml, 'NextContinuationToken');
      if (token === '' || most < 1_000) return;
    }
  }

  /**
   * The size of a file; null: there is none. By a list, since an answer to HEAD has no words: a bucket that is missing would be
   * a file that is lost for ever.
   */
  async size(key: string): Promise<number | null> {
    for await (const found of this.list(key, 1)) if (found.key === key) return found.size;
    return null;
  }

  async begin(key: string, signal?: AbortSignal): Promise<Upload> {
    const id = textOf(await this.#ask({ method: 'POST', key, query: { uploads: '' }, signal }), 'UploadId');
    if (id === '') throw new BucketError(200, '', 'an upload without an id');
    return { key, id };
  }

  /** Resolves with the tag of the part. Parts are numbered from 1. */
  async part(
    { key, id }: Upload,
    number: number,
    body: Uint8Array,
    { md5, signal }: Pick<BucketRequest, 'md5' | 'signal'>,
  ): Promise<string> {
    const query = { partNumber: String(number), uploadId: id };
    const { headers } = await this.#again(signal, async () => {
      const response = await this.#connection.send({
        method: 'PUT',
        key,
        query,
        body,
        ...(md5 !== undefined && { md5 }),
        signal,
      });
      response.resume();
      return response;
    });
    if (headers.etag === undefined) throw new BucketError(200, '', 'a part without an ETag');
    return headers.etag;
  }

  /** Makes the file of its parts. Rejects with NoSuchUpload, too, when an answer to this was lost. */
  async complete({ key, id }: Upload, etags: readonly string[], signal?: AbortSignal): Promise<void> {
    const body = Buffer.from(completionOf(etags));
    await this.#ask({ method: 'POST', key, query: { uploadId: id }, body, signal });
  }

  /** Ends every upload of this key that was neither completed nor aborted, and removes its parts. */
  async abort(key: string): Promise<void> {
    const all = (await this.uploads(key)).filter((upload) => upload.key === key);
    for (const { id } of all) await this.#unlessMissing({ method: 'DELETE', key, query: { uploadId: id } });
  }

  /** All uploads of keys with this beginning that were neither completed nor aborted. */
  async uploads(prefix: string): Promise<readonly Upload[]> {
    const all: Upload[] = [];
    for (let marker = {}; ;) {
      const xml = await this.#ask({ method: 'GET', key: '', query: { uploads: '', prefix, ...marker } });
      for (const found of elementsOf(xml, 'Upload'))
        all.push({ key: textOf(found, 'Key'), id: textOf(found, 'UploadId') });
      if (textOf(xml, 'IsTruncated') !== 'true') return all;
      marker = {
        'key-marker': textOf(xml, 'NextKeyMarker'),
        'upload-id-marker': textOf(xml, 'NextUploadIdMarker'),
      };
    }
  }

  /** A URL that GETs the file until `seconds` have passed, with these headers of the answer. */
  link(key: string, seconds: number, headers: Readonly<Record<string, string>>): string {
    const query = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [`response-${name}`, value]),
    );
    return this.#connection.link(key, seconds, query);
  }

  /** Ends requests that are under way, and the waits for another try, within the longest pause. */
  close(): void {
    this.#isClosed = true;
    this.#connection.close();
  }

  #ask(request: BucketRequest): Promise<string> {
    return this.#again(request.signal, () => this.#connection.ask(request));
  }

  async #unlessMissing(request: BucketRequest): Promise<void> {
    try {
      await this.#ask(request);
    } catch (error) {
      const isGone = error instanceof BucketError && ['NoSuchKey', 'NoSuchUpload'].includes(error.code);
      if (!isGone) throw error;
    }
  }

  async #again<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#retryMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        signal?.throwIfAborted();
        if (this.#isClosed || !mayPass(error) || performance.now() + pauseMs > until) throw error;
      }
      try {
        await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal }); // many that failed at once do not come back at once
      } finally {
        signal?.throwIfAborted();
      }
    }
  }
}

/** Whether the same request may succeed a little later. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof BucketError)) return false;
  if (error.status === NOT_IMPLEMENTED) return false;
  return error.status === 0 || error.status >= 500 || error.status === 429 || PASSING.has(error.code);
}
