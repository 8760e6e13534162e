import { decoded } from '../base/decoded.ts';
import { getContent } from '../pull/http.ts';
import { LineReader } from '../pull/lines.ts';
import { BEGINNING, readAnswer, type ProvedPlace } from '../pull/proof.ts';
import { jsonIn } from '../pull/retry.ts';
import { ask, objectIn, type Answer, type Question } from './asking.ts';
import { Broken, Unseen } from './verdicts.ts';

/** The URLs of a resource by their use, as `GET /resources` lists them: `page`, `stream`, `partitions`, `changes`, `exports`. */
type Links = Readonly<Record<string, string>>;

/** Rows that a stream has proved. */
export interface ProvedRows {
  readonly lines: readonly string[];
  readonly place: ProvedPlace;
  /** The first checkpoint above the end. */
  readonly checkpoint: ProvedPlace | null;
  /** What was asked, for messages. */
  readonly asked: string;
}

/** The most rows that are read of a set: more than a server may send without a checkpoint. */
const MOST_ROWS = 25_000;
/** How long one answer may take. Milliseconds. */
const READ_MS = 60_000;

/** A resource of the server that is examined, and the rows that it shows first. */
export class Subject {
  readonly key: string | null;
  readonly #links: Links;
  readonly #base: URL;
  #sample: Promise<ProvedRows> | null = null;

  /** `base`: what the links are relative to. */
  constructor(base: URL, links: Links, key: string | null) {
    this.#base = base;
    this.#links = links;
    this.key = key;
  }

  /** Throws Unseen where the server does not offer this use. */
  url(use: string, query: Readonly<Record<string, string>> = {}, below = ''): URL {
    const link = this.#links[use];
    if (link === undefined) throw new Unseen(`this resource has no link ${use}`);
    const url = new URL(link, this.#base);
    url.pathname += below;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  /** Sends a request with the key. */
  ask(url: URL, question: Question = {}): Promise<Answer> {
    const key = this.key === null ? {} : { authorization: `Bearer ${this.key}` };
    const headers = { accept: '*/*', 'accept-encoding': 'identity', ...key, ...question.headers };
    return ask(url, { ...question, headers });
  }

  /** The proved rows of a stream. Rejects with Broken when it has no end line, as readAnswer does when a proof is wrong. */
  async read(
    query: Readonly<Record<string, string>>,
    compression: 'none' | 'gzip' = 'none',
  ): Promise<ProvedRows> {
    const url = this.url('stream', { ...query, format: 'ndjson', checkpoints: 'true' });
    return this.readUrl(url, compression);
  }

  /** The decoded body of an answer with 200, as it comes, for at most a minute. Rejects as getContent does. */
  content(url: URL, accept: string, compression: 'none' | 'gzip' = 'none') {
    return getContent(url, accept, { compression, key: this.key, signal: AbortSignal.timeout(READ_MS) });
  }

  async readUrl(
    url: URL,
    compression: 'none' | 'gzip' = 'none',
    reader = new LineReader(),
  ): Promise<ProvedRows> {
    const asked = `GET ${url.pathname}${url.search}`;
    const content = await this.content(url, 'application/x-ndjson', compression);
    const pieces: Buffer[] = [];
    let checkpoint: ProvedPlace | null = null;
    let place: ProvedPlace | null = null;
    for await (const step of readAnswer(content, BEGINNING, reader)) {
      if (step.kind === 'rows') pieces.push(Buffer.from(step.bytes));
      else if (step.place.ended) place = step.place;
      else checkpoint ??= step.place;
    }
    if (!place) throw new Broken(`${asked} ended without its end line`);
    const lines = Buffer.concat(pieces).toString().split('\n').slice(0, -1);
    return { lines, place, checkpoint, asked };
  }

  /** The first rows of the set in order of id, read once. */
  sample(): Promise<ProvedRows> {
    return (this.#sample ??= this.read({ limit: String(MOST_ROWS) }));
  }

  /** Whether the sample is the whole set. */
  async isWhole(): Promise<boolean> {
    return (await this.sample()).lines.length < MOST_ROWS;
  }

  /** The same resource, whose sample is read anew. */
  again(): Subject {
    return new Subject(this.#base, this.#links, this.key);
  }
}

/** The JSON of a row's key. */
export function keyOf(line: string): string {
  const [, value] = Object.entries(Object(jsonIn(line)) as object)[0] ?? [];
  return JSON.stringify(value);
}

/** The key of a row as a URL has it. Throws Unseen when it is none that a URL shows. */
export function idOf(line: string): string {
  const id = jsonIn(keyOf(line));
  if (typeof id === 'string' || typeof id === 'number') return String(id);
  throw new Unseen('the key of a row is no text or number');
}

/**
 * The resource that a URL is of, or the first one with a stream where it is that of a server. `url` may also be that of a
 * server without a list of resources: it then has pages and a stream.
 */
export async function subjectAt(url: URL, key: string | null): Promise<Subject> {
  const [, folder = '', name = ''] = /^(.*?)\/?([^/]*)\/?$/.exec(url.pathname) ?? [];
  for (const [path, wanted] of [
    [url.pathname.replace(/\/$/, ''), null],
    [folder, decoded(name) ?? name],
  ] as const) {
    const base = new URL(`${path}/resources`, url);
    const answer = await new Subject(base, {}, key).ask(base);
    if (answer.status !== 200 || !Array.isArray(objectIn(answer).resources)) continue;
    const found = (objectIn(answer).resources as { name?: unknown; links?: Links }[]).find((one) =>
      wanted === null ? one.links?.stream !== undefined : one.name === wanted,
    );
    if (found?.links) return new Subject(base, found.links, key);
  }
  const page = url.pathname.replace(/\/$/, '');
  return new Subject(url, { page, stream: `${page}/stream` }, key);
}
