import type { Answer, GetAnswer } from '../../src/pull/export-file.ts';
import type { GetContent } from '../../src/pull/proved-rows.ts';
import { failureOfAnswer, Interruption, Refusal } from '../../src/pull/retry.ts';

/** The address of the page. undefined in Node. */
export const PAGE = (globalThis as { location?: { readonly href: string; readonly origin: string } })
  .location;

/** No cache keeps a set. */
const UNCACHED = { cache: 'no-store' } as RequestInit;

/** The most bytes of an answer that is no content: the rest of it says nothing. */
const LONGEST_PROBLEM = 64 * 1024;

/** The server answers, but the browser lets no page of this origin read its answers. */
export class CorsRefused extends Refusal {}

/** What requests of one reader mean that no answer came to: browsers do not say whether CORS is why. */
class Unanswered {
  readonly #isAnswering: (url: URL, signal: AbortSignal) => Promise<boolean>;
  readonly #remedy: string;
  #wasAnswered = false;
  #wasBlocked = false;

  /** `isAnswering`: whether the server answers what no page reads. */
  constructor(remedy: string, isAnswering: (url: URL, signal: AbortSignal) => Promise<boolean>) {
    this.#remedy = remedy;
    this.#isAnswering = isAnswering;
  }

  answered(): void {
    this.#wasAnswered = true;
  }

  async failureOf(url: URL, error: unknown, signal: AbortSignal): Promise<Error> {
    const isBlocked = !this.#wasAnswered && isForeign(url) && (await this.#isAnswering(url, signal));
    // A server that has just come up answers the second request. One whose CORS setting is missing never does.
    if (isBlocked && this.#wasBlocked)
      return new CorsRefused(`${url.origin} answers, but not to pages of ${PAGE?.origin}: ${this.#remedy}`);
    this.#wasBlocked = isBlocked;
    return new Interruption(`the server does not answer: ${reasonOf(error)}`, { cause: error });
  }
}

/** Gets the contents of answers by `fetch`, in browsers and in Node. */
export function contentByFetch(): GetContent {
  const unanswered = new Unanswered('its setting CORS_ORIGIN does not allow them', (url, signal) =>
    answersOthers(new URL('/livez', url), signal),
  );
  return async (url, accept, { key, signal }) => {
    // Browsers choose the codings themselves. Node takes several times as long for a coded answer of many rows.
    const headers = {
      accept,
      'accept-encoding': 'identity',
      ...(key !== null && { authorization: `Bearer ${key}` }),
    };
    let response: Response;
    try {
      response = await fetch(url, { ...UNCACHED, headers, signal, redirect: 'manual' });
    } catch (error) {
      throw signal.aborted ? error : await unanswered.failureOf(url, error, signal);
    }
    unanswered.answered();
    const header = (name: string) => response.headers.get(name);
    if (response.status !== 200) throw await failureOf(response);
    const type = header('content-type') ?? 'no content type';
    if (type.split(';')[0] === accept) return chunksOf(response);
    await response.body?.cancel();
    throw new Refusal(`the server answered with ${type}, not with ${accept}: is this the URL of a resource?`);
  };
}

/**
 * Gets answers as they are. Pages see no redirects: there the browser follows them, and takes the key out where they lead to
 * another origin.
 */
export const answerByFetch: GetAnswer = (url, headers, signal) => answerOf(url, headers, signal, UNCACHED);

/** The same for files that never change, which the cache of a browser may keep. One that was wrong there is read again. */
export function cachedByFetch(): GetAnswer {
  const unanswered = new Unanswered(
    'it must send Access-Control-Allow-Origin, which sluice does where CORS_ORIGIN allows them',
    answersOthers,
  );
  return async (url, { 'cache-control': isWrong, ...headers }, signal) => {
    const how = { cache: isWrong === undefined ? 'default' : 'reload' } as RequestInit;
    try {
      const answer = await answerOf(url, headers, signal, how);
      unanswered.answered();
      return answer;
    } catch (error) {
      throw signal.aborted ? error : await unanswered.failureOf(url, error, signal);
    }
  };
}

async function answerOf(
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  how: RequestInit,
): Promise<Answer> {
  const redirect = PAGE === undefined ? 'manual' : 'follow';
  let response: Response;
  try {
    response = await fetch(url, { ...how, headers, signal, redirect });
  } catch (error) {
    throw signal.aborted ? error : new Interruption(`no answer: ${reasonOf(error)}`, { cause: error });
  }
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    content: chunksOf(response),
    isRedirected: response.redirected,
  };
}

/** The content as it comes. Rejects with Interrupted where it is cut. Nothing more is sent once the caller stops reading. */
async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  if (!reader) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'TypeError')
      throw new Interruption(`the connection was cut: ${reasonOf(error)}`, { cause: error });
    throw error;
  } finally {
    await reader.cancel().catch(() => undefined); // it fails as the read did
  }
}

/** The failure that another answer than 200 stands for. */
async function failureOf(response: Response): Promise<Error> {
  const { status, type, headers } = response;
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    await response.body?.cancel();
    return new Refusal('the server answered with a redirect, which is not followed: give the final URL');
  }
  return failureOfAnswer(status, (name) => headers.get(name), await beginningOf(response));
}

/** The first bytes of an answer as text, as far as they come. */
async function beginningOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for await (const chunk of chunksOf(response)) {
      text += decoder.decode(chunk, { stream: true });
      bytes += chunk.length;
      if (bytes >= LONGEST_PROBLEM) break;
    }
  } catch (error) {
    if (!(error instanceof Interruption)) throw error; // the status says enough
  }
  return text;
}

/** Whether the browser asks the server if this page may read its answers. */
function isForeign(url: URL): boolean {
  return PAGE !== undefined && PAGE.origin !== url.origin;
}

/** Whether a server answers a request whose answer no page reads. */
async function answersOthers(url: URL, signal: AbortSignal): Promise<boolean> {
  return fetch(url, { ...UNCACHED, mode: 'no-cors', signal }).then(
    () => true,
    () => false,
  );
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
