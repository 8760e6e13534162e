/** Requests to the server, with the key of this tab. Fixed paths are relative to the page, which a proxy may have under a path. */
import { BEGINNING } from '../../pull/proof.ts';
import type { ProvingOptions } from '../../pull/proved-rows.ts';
import { failureOf, Interruption, jsonIn, REAL_CLOCK, retryAfterMs } from '../../pull/retry.ts';
import { parseJson } from './json.ts';
import { askForKey, currentKey } from './key.ts';
import type { Resource } from './resource.ts';
import { isAbort, reasonOf } from './text.ts';

interface Problem {
  readonly detail?: string;
  readonly code?: string;
}

/** An answer other than 2xx. `message` is the detail of its problem. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string | undefined;
  /** How long the server asks the page to wait. Milliseconds. */
  readonly retryAfterMs: number;

  constructor({ status, headers }: Response, { detail, code }: Problem) {
    super(detail ?? `The server answered ${status}.`);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs(headers.get('retry-after'));
  }
}

/** Sends a request with the key of this tab, and again when the server wants another one. Resolves with any answer. */
async function send(url: string, options: RequestInit): Promise<Response> {
  const key = currentKey();
  const headers = new Headers(options.headers);
  if (key !== null) headers.set('authorization', `Bearer ${key}`);
  const response = await fetch(url, { ...options, headers }).catch(unanswered);
  if (response.status !== 401 || !(await askForKey(key))) return response;
  return send(url, options);
}

function unanswered(error: unknown): never {
  throw isAbort(error) ? error : new Error('The server does not answer.', { cause: error });
}

/** Whether the same request may succeed later. A refusal of the query itself never does. */
export function mayPass(error: unknown): boolean {
  return !(error instanceof Refusal) || error.status >= 500 || error.status === 429;
}

/** An answer whose content the caller reads. Throws Refused. */
export async function open(url: string, options: RequestInit = {}): Promise<Response> {
  const response = await send(url, options);
  if (response.ok) return response;
  throw new Refusal(response, Object(jsonIn(await response.text())) as Problem); // proxies answer with other text
}

/** The bytes of an answer as they come. */
export async function* chunksOf({
  body,
}: Response): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const reader = (body ?? new Blob().stream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

/** How long a lost connection waits at least before it goes on, so that one sees it. Milliseconds. */
const AGAIN_MS = 1500;

/** What all streams of this page are proved with. */
export const PROVING = {
  from: BEGINNING,
  firstRow: null,
  compression: 'none',
  key: null,
  idleMs: 60_000,
  clock: REAL_CLOCK,
  steadyPauseMs: AGAIN_MS,
  getContent: (url, _accept, { signal }) => Promise.resolve(contentOf(url, signal)),
} as const satisfies Partial<ProvingOptions>;

async function* contentOf(url: URL, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* chunksOf(await open(url.href, { signal, cache: 'no-store' }));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Refusal) throw failureOf(error.status, error.message, error.retryAfterMs);
    throw new Interruption(reasonOf(error), { cause: error });
  }
}

interface Answer<T> {
  readonly response: Response;
  readonly body: T;
  /** Milliseconds until the last byte. */
  readonly ms: number;
}

/** The JSON of an answer. Throws Refused. `T` is what the API reference says of it. */
export async function ask<T>(url: string, options: RequestInit = {}): Promise<Answer<T>> {
  const began = performance.now();
  const response = await open(url, options);
  const text = await response.text();
  return { response, ms: performance.now() - began, body: parseJson(text || 'null') as T };
}

interface Listing {
  readonly resources: readonly Resource[];
  /** The URL of the open streams. Missing: the key may not see them. */
  readonly streams?: string;
}

/** The resources of the server that the key opens. */
export async function listResources(): Promise<Listing> {
  const { body } = await ask<Listing>('resources', { cache: 'no-store' });
  return body;
}
