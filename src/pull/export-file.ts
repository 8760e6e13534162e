import { Backoff, failureOfAnswer, Interruption, jsonIn, Refusal, type BackoffOptions } from './retry.ts';
import type { GetContent } from './proved-rows.ts';

/** An answer as it came. Redirects are not followed, unless a browser, which shows none, has followed one. */
export interface Answer {
  readonly status: number;
  readonly header: (name: string) => string | null | undefined;
  /** Ends where the connection ends, whole or cut, or rejects with Interruption. Nothing is read before. */
  readonly content: AsyncIterable<Uint8Array>;
  /** Whether it came from where a redirect led. */
  readonly isRedirected: boolean;
}

/** Sends a GET. Rejects with Interruption when no answer comes. */
export type GetAnswer = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<Answer>;

export interface DownloadOptions extends BackoffOptions {
  /** An API key, for the server alone. null for none. */
  readonly key: string | null;
  readonly getContent: GetContent;
  readonly getAnswer: GetAnswer;
}

/** What the server says of the file of a complete export. */
export interface ExportedFile {
  readonly bytes: number;
  readonly rows: number;
  /** 64 hexadecimal digits. */
  readonly sha256: string;
}

/** The longest time that a request waits for the end of an export. Proxies cut what is silent for a minute. Seconds. */
const WAIT_SECONDS = 30;
/** The longest JSON of an export, in bytes: its order has at most 14 KiB. */
const LONGEST_EXPORT = 1024 * 1024;
const LONGEST_PROBLEM = 64 * 1024;
/** After so many bytes, the next failure counts as the first one. */
const STEP_BYTES = 64 * 1024;
const LINK = 307;

/** The URLs of an export and of its file, from either of them. null: it is neither. */
export function exportUrls(given: URL): { readonly status: URL; readonly file: URL } | null {
  const [, path] = /^(.*\/exports\/[^/]+?)(?:\/file)?\/?$/.exec(given.pathname) ?? [];
  if (path === undefined || !/^https?:$/.test(given.protocol)) return null;
  const file = new URL(given);
  file.pathname = `${path}/file`;
  file.hash = '';
  const status = new URL(path, given);
  return { status, file };
}

/** Waits until an export is complete. Rejects with Refusal when it ends in another way. */
export async function completed(status: URL, options: DownloadOptions): Promise<ExportedFile> {
  const { getContent, key, idleMs } = options;
  const asked = new URL(status);
  asked.searchParams.set('wait', String(Math.max(0, Math.min(WAIT_SECONDS, Math.floor(idleMs / 2000)))));
  for (;;) {
    const text = await new Backoff(options).run(async (signal) =>
      textOf(
        await getContent(asked, 'application/json', { compression: 'none', key, signal }),
        LONGEST_EXPORT,
      ),
    );
    const { state, problem, file } = Object(jsonIn(text)) as Readonly<Record<string, unknown>>;
    if (state === 'queued' || state === 'running') continue;
    if (state === 'complete') return fileIn(file);
    const { detail = '' } = Object(problem) as { detail?: unknown };
    throw new Refusal(
      typeof state === 'string'
        ? `the export is ${state}. ${String(detail)}`.trim()
        : 'the answer is no export',
    );
  }
}

function fileIn(value: unknown): ExportedFile {
  const { bytes, rows, sha256 } = Object(value) as Readonly<Record<string, unknown>>;
  const isFile = [bytes, rows].every((count) => Number.isSafeInteger(count) && Number(count) >= 0);
  if (!isFile || typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    throw new Refusal('the answer is no export');
  return { bytes: Number(bytes), rows: Number(rows), sha256 };
}

/**
 * The bytes of an export's file from `from` on, each once, however often the connection is cut or a link ends. A server may
 * lead to an object store, which gets no key. Nothing is proved: the caller compares the SHA-256. Rejects as `pull` does.
 */
export async function* exportBytes(
  url: URL,
  file: ExportedFile,
  from: number,
  options: DownloadOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const backoff = new Backoff(options);
  const source = new FileSource(url, file, options);
  for (let at = from, counted = from; at < file.bytes;) {
    try {
      for await (const chunk of backoff.content((signal) => source.open(at, signal))) {
        at += chunk.length;
        if (at > file.bytes)
          throw new Refusal(`the file has more than the ${file.bytes} bytes of its export`);
        if (at - counted >= STEP_BYTES) {
          backoff.reset();
          counted = at;
        }
        const comeBack = backoff.leave();
        yield chunk;
        comeBack();
      }
      if (at < file.bytes) throw new Interruption('the connection was cut');
    } catch (error) {
      await backoff.after(error);
    }
  }
}

/** Where the bytes of a file come from: the server, or an object store that it leads to by a link, a new one each time. */
class FileSource {
  readonly #url: URL;
  readonly #file: ExportedFile;
  readonly #options: DownloadOptions;
  /** The tag of the file in the object store. Empty: unknown. */
  #tag = '';

  constructor(url: URL, file: ExportedFile, options: DownloadOptions) {
    this.#url = url;
    this.#file = file;
    this.#options = options;
  }

  /** The bytes from `at` on. */
  async open(at: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { key, getAnswer } = this.#options;
    const headers = { 'accept-encoding': 'identity', ...(at > 0 && { range: `bytes=${at}-` }) };
    const own = { ...headers, ...(key !== null && { authorization: `Bearer ${key}` }) };
    const answer = await getAnswer(this.#url, own, signal);
    if (answer.isRedirected) return this.#elsewhere(answer, at);
    if (answer.status === LINK) {
      const link = this.#linkIn(answer);
      await textOf(answer.content, 0); // nothing of it is left open
      const condition = at > 0 && this.#tag !== '' ? { 'if-range': this.#tag } : {};
      return this.#elsewhere(await getAnswer(link, { ...headers, ...condition }, signal), at);
    }
    if (answer.status !== 200 && answer.status !== 206) {
      const text = await textOf(answer.content, LONGEST_PROBLEM);
      throw failureOfAnswer(answer.status, answer.header, text);
    }
    this.#checkTag(answer);
    return bytesOf(answer, at);
  }

  /** The server's tag is the SHA-256. A browser shows it to pages of other origins only where the server says so. */
  #checkTag({ header }: Answer): void {
    const tag = header('etag') ?? '';
    if (tag !== '' && tag !== `"${this.#file.sha256}"`)
      throw new Refusal('the server has another file for this export than it had');
  }

  #linkIn(answer: Answer): URL {
    this.#checkTag(answer);
    const location = answer.header('location') ?? '';
    const link = URL.canParse(location) ? new URL(location) : null;
    if (!link || !/^https?:$/.test(link.protocol) || link.username + link.password !== '')
      throw new Refusal('the server answered with a link that is none');
    return link;
  }

  /** A link may have ended meanwhile, or its store be busy: the server is asked for another one. */
  async #elsewhere(answer: Answer, at: number): Promise<AsyncIterable<Uint8Array>> {
    const { status, header, content } = answer;
    if (status !== 200 && status !== 206) await textOf(content, 0);
    if (status >= 300 && status < 400)
      throw new Refusal('the object store answered with a redirect, which is not followed');
    if (status !== 200 && status !== 206)
      throw new Interruption(`the object store answered ${status}`, { status });
    this.#tag = header('etag') ?? '';
    return bytesOf(answer, at);
  }
}

/** The content from `at` on. A whole file, in place of the rest, is read up to there. */
async function* bytesOf(
  { status, header, content }: Answer,
  at: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = status === 206 ? 0 : at;
  const coding = header('content-encoding') ?? 'identity';
  const range = header('content-range') ?? '';
  for await (const chunk of content) {
    if (coding !== 'identity') throw new Refusal('the file came in a content coding');
    if (status === 206 && range !== '' && !range.startsWith(`bytes ${at}-`))
      throw new Refusal('the server answered with another range than the one asked for');
    if (chunk.length > left) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

async function textOf(content: AsyncIterable<Uint8Array>, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of content) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > most) break;
  }
  return text;
}
