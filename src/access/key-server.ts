import type { Log } from '../log.ts';
import { codeOf } from '../error-reason.ts';

/** How long after a fetch an unknown key does not cause another. Milliseconds. */
const COOL_MS = 30_000;
/** The same while no keys are known at all, so that a key server may start after this server. */
const FIRST_COOL_MS = 5_000;
/** How often the keys are fetched without a cause, so that one that was withdrawn is no longer accepted. */
const REFRESH_MS = 10 * 60_000;
const TIMEOUT_MS = 5_000;
/** The most bytes of a set of keys. */
const MOST_BYTES = 1024 * 1024;

export interface KeyServerOptions<Keys> {
  readonly url: string;
  /** Reads a set of keys. Throws where it is none. */
  readonly read: (text: string) => Keys;
  readonly log: Log;
  /** Milliseconds since any moment; must not decrease. */
  readonly now?: () => number;
}

/**
 * The keys that a key server publishes under a URL. They are kept until others come: while the server is away, known
 * keys go on. Concurrent callers share one fetch.
 */
export class KeyServer<Keys> {
  readonly #options: KeyServerOptions<Keys>;
  readonly #now: () => number;
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #text = '';
  #keys: Keys | null = null;
  #began = -Infinity;
  #running: Promise<void> | null = null;

  constructor(options: KeyServerOptions<Keys>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#timer = setInterval(() => void this.#fetchOnce(), REFRESH_MS);
    this.#timer.unref();
  }

  /** The keys that are known now. Another object when others came. null: none were ever fetched. */
  get keys(): Keys | null {
    return this.#keys;
  }

  /** Fetches the keys, unless that was tried a short time ago. Resolves with the known ones. Never rejects. */
  async fetch(): Promise<Keys | null> {
    const cool = this.#keys === null ? FIRST_COOL_MS : COOL_MS;
    if (this.#running !== null || this.#now() - this.#began >= cool) await this.#fetchOnce();
    return this.#keys;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    await this.#running;
  }

  #fetchOnce(): Promise<void> {
    this.#running ??= this.#fetch().finally(() => (this.#running = null));
    return this.#running;
  }

  async #fetch(): Promise<void> {
    const { url, read, log } = this.#options;
    this.#began = this.#now();
    try {
      const text = await download(url, this.#closing.signal);
      if (text === this.#text) return;
      this.#keys = read(text);
      this.#text = text;
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const then = this.#keys === null ? 'no token can be verified' : 'the known keys go on';
      log.warn({ reason: reasonOf(error) }, `JWT_JWKS_URL gave no keys: ${then}`);
    }
  }
}

/** Never follows a redirect: only the operator's URL is trusted. */
async function download(url: string, closing: AbortSignal): Promise<string> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(TIMEOUT_MS)]);
  const answer = await fetch(url, { redirect: 'error', signal, headers: { accept: 'application/json' } });
  if (answer.status !== 200) {
    await answer.body?.cancel();
    throw new Error(`the status is ${answer.status}`);
  }
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > MOST_BYTES) throw new Error(`more than ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** The error in a few words. `fetch` hides the cause of a failure in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = error.cause === undefined ? undefined : codeOf(error.cause);
  return code === undefined ? error.message : `${error.message}: ${String(code)}`;
}
