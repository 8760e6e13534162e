import { createHash } from 'node:crypto';
import {
  Agent as PlainAgent,
  request as requestPlain,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as TlsAgent, request as requestTls } from 'node:https';
import aws4 from 'aws4';
import { reasonOf } from '../../base/error-reason.ts';
import { RecentMap } from '../../base/recent-map.ts';
import type { BucketPlace, Credentials } from './place.ts';
import { textOf } from './xml.ts';

/** A connection on which nothing moves for this long is given up. Milliseconds. */
const IDLE_MS = 20_000;
/** The most bytes of an answer other than a file: a list of a thousand keys has 500 KB. */
const LONGEST_ANSWER = 4 * 1024 * 1024;
/** Credentials in files are read again after this time, and when the store refuses them. Milliseconds. */
const CREDENTIALS_MS = 60_000;
/** AWS says 400 to a session token that has ended, or is another key's. */
const OF_TOKENS: ReadonlySet<string> = new Set(['ExpiredToken', 'InvalidToken', 'TokenRefreshRequired']);
const MOST_LINKS = 100;
/** Stores refuse signatures that are 15 minutes off. The store's clock counts when it differs by more than this. Milliseconds. */
const SKEW_MS = 60_000;

/** An answer of the store that is no success, or a connection that brought none. */
export class BucketError extends Error {
  /** 0: there was no answer. */
  readonly status: number;
  /** Such as NoSuchBucket. Empty: the answer has none. */
  readonly code: string;

  constructor(status: number, code: string, detail: string, cause?: unknown) {
    super(`${status === 0 ? 'no answer' : `${status} ${code}`.trim()}: ${detail}`, { cause });
    this.name = 'BucketError';
    this.status = status;
    this.code = code;
  }
}

export interface BucketRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Empty: the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** The MD5 of the body in base64, which the store compares with what it got. Absent: it is computed here. */
  readonly md5?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface ConnectionOptions {
  readonly idleMs?: number;
  readonly now?: () => number;
}

/** Signs single requests to one bucket by its credentials and the store's clock, and sends them. */
export class BucketConnection {
  readonly #place: BucketPlace;
  readonly #agent: PlainAgent;
  readonly #idleMs: number;
  readonly #now: () => number;
  #credentials: Credentials | null = null;
  #readAt = 0;
  /** The store's clock less our own. Milliseconds. */
  #skewMs = 0;
  /** A signature is of a whole second, so the links of one are the same, and a signature takes a third of a download. */
  readonly #links = new RecentMap<string>(MOST_LINKS);

  constructor(place: BucketPlace, { idleMs = IDLE_MS, now = Date.now }: ConnectionOptions = {}) {
    this.#place = place;
    this.#idleMs = idleMs;
    this.#now = now;
    this.#agent =
      place.url.protocol === 'https:'
        ? new TlsAgent({ keepAlive: true })
        : new PlainAgent({ keepAlive: true });
  }

  /** Resolves with a successful answer, whose body the caller reads or destroys. Rejects with BucketError for others. */
  async send(request: BucketRequest): Promise<IncomingMessage> {
    const response = await this.#exchange(request);
    const { statusCode: status = 0, headers } = response;
    this.#compareClocks(headers.date);
    if (status >= 200 && status < 300) return response;
    const xml = await bodyOf(response);
    const code = textOf(xml, 'Code');
    if (status === 403 || OF_TOKENS.has(code)) {
      this.#credentials = null; // a file may have others by now
      this.#links.clear();
    }
    throw new BucketError(status, code, textOf(xml, 'Message'));
  }

  /** The text of a successful answer. A store may say 200 first and find the error later, in the body. */
  async ask(request: BucketRequest): Promise<string> {
    const xml = await bodyOf(await this.send(request));
    if (/<Error[ >]/.test(xml)) throw new BucketError(500, textOf(xml, 'Code'), textOf(xml, 'Message'));
    return xml;
  }

  /** The body of a successful answer, of any length. */
  async fetch(request: BucketRequest): Promise<Uint8Array> {
    return bytesOf(await this.send(request), Infinity);
  }

  /** A URL by which anybody may send this GET until `seconds` have passed. */
  link(key: string, seconds: number, query: Readonly<Record<string, string>>): string {
    const time = this.#time();
    const asked = [time, seconds, key, ...Object.values(query)].join(' ');
    const known = this.#links.get(asked);
    if (known !== undefined) return known;
    const signed = { ...query, 'X-Amz-Expires': String(seconds), 'X-Amz-Date': time };
    const { path = '' } = aws4.sign({ ...this.#target('GET', key, signed), signQuery: true }, this.#signer());
    const link = `${this.#place.url.origin}${path}`;
    this.#links.set(asked, link);
    return link;
  }

  close(): void {
    this.#agent.destroy();
  }

  #target(method: string, key: string, query: Readonly<Record<string, string>>) {
    const { url, region } = this.#place;
    const search = new URLSearchParams(query).toString();
    const path = `${url.pathname.replace(/\/$/, '')}/${key}${search === '' ? '' : `?${search}`}`;
    return { service: 's3', region, method, host: url.host, path };
  }

  #signer(): Credentials {
    if (this.#credentials === null || this.#now() - this.#readAt > CREDENTIALS_MS) {
      try {
        this.#credentials = this.#place.credentials();
      } catch (error) {
        throw unanswered(error);
      }
      this.#readAt = this.#now();
    }
    return this.#credentials;
  }

  /** The store's time in the form of signatures. */
  #time(): string {
    return new Date(this.#now() + this.#skewMs).toISOString().replace(/[:-]|\.\d{3}/g, '');
  }

  #compareClocks(date: string | undefined): void {
    const skewMs = Date.parse(date ?? '') - this.#now();
    this.#skewMs = Math.abs(skewMs) > SKEW_MS ? skewMs : 0; // NaN: the answer has no date
  }

  #exchange({
    method,
    key,
    query = {},
    headers = {},
    body,
    md5,
    signal,
  }: BucketRequest): Promise<IncomingMessage> {
    const target = this.#target(method, key, query);
    const own = {
      ...headers,
      ...(body && { 'Content-MD5': md5 ?? createHash('md5').update(body).digest('base64') }),
      ...(method !== 'GET' && { 'Content-Length': String(body?.length ?? 0) }),
      'X-Amz-Content-Sha256': 'UNSIGNED-PAYLOAD', // the MD5 is signed; SeaweedFS does not compare a SHA-256
      'X-Amz-Date': this.#time(),
    };
    const signed = aws4.sign({ ...target, headers: own }, this.#signer());
    const { hostname, port, protocol } = this.#place.url;
    const options: RequestOptions = {
      method,
      hostname,
      port,
      agent: this.#agent,
      path: signed.path ?? '',
      headers: signed.headers ?? {},
      ...(signal && { signal }),
    };
    return new Promise((resolve, reject) => {
      const send = protocol === 'https:' ? requestTls : requestPlain;
      const request: ClientRequest = send(options, resolve);
      request.on('error', (error) => reject(unanswered(error)));
      request.setTimeout(this.#idleMs, () =>
        request.destroy(new Error(`nothing moved for ${this.#idleMs} ms`)),
      );
      request.end(body);
    });
  }
}

function unanswered(error: unknown): BucketError {
  return new BucketError(0, '', reasonOf(error), error);
}

/** The body as text. Rejects with BucketError when it is cut. */
async function bodyOf(response: IncomingMessage): Promise<string> {
  return (await bytesOf(response, LONGEST_ANSWER)).toString();
}

async function bytesOf(response: IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > most) throw new Error(`an answer of more than ${most} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw unanswered(error);
  }
  return Buffer.concat(chunks);
}
