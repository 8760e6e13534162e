import { outcomeOf, type Outcome } from './counts.ts';
import { NotHttp, type Head } from './http/answer-reader.ts';

import { Connection } from './http/connection.ts';
import type { CheckedPage } from './page-check.ts';
import { nameOf, type PageQuery } from './queries.ts';
import type { Requests } from './http/requests.ts';
import type { SlowRequest } from './result.ts';

/** How a page ended. Times in milliseconds of the clock. */
export interface PageEnd {
  readonly outcome: Outcome;
  readonly intended: number;
  readonly shown: () => Omit<SlowRequest, 'latency' | 'second'>;
  /** Why it is not a good answer, when that is no status. */
  readonly reason: string | null;
  /** Whether the server could not be reached. */
  readonly isUnreachable: boolean;
}

interface PageReaderOptions {
  readonly requests: Requests;
  readonly now: () => number;
  readonly random: () => number;
  /** The content coding that this reader asks for. */
  readonly coding: string;
  /** The share of its requests that are conditional, once it has a tag. */
  readonly conditional: number;
  /** Collects and checks a page. null: this one is not checked. */
  readonly check: (query: PageQuery) => CheckedPage | null;
  readonly onEnd: (reader: PageReader, end: PageEnd) => void;
}

const MOST_TAGS = 100;
const NEXT = /<[^>]*?(\?[^>]*)>\s*;\s*rel="?next"?/;

/** One connection that reads pages, one at a time, as a client does that keeps its connection. */
export class PageReader {
  readonly #options: PageReaderOptions;
  readonly #connection: Connection;
  /** The tags of pages that it has, by path. */
  readonly #tags = new Map<string, string>();
  /** Where its walks go on, by the path at which they began. */
  readonly #next = new Map<string, string>();
  #query: PageQuery | null = null;
  #path = '';
  #intended = 0;
  #sent = 0;
  #isConditional = false;
  #trace: string | null = null;
  #head: Head | null = null;
  #checked: CheckedPage | null = null;

  constructor(options: PageReaderOptions) {
    this.#options = options;
    this.#connection = new Connection(options.requests.origin);
  }

  /** When the request without an answer was due. null: there is none. */
  get waitsSince(): number | null {
    return this.#query ? this.#intended : null;
  }

  /** Sends a request that was due at `intended`. */
  ask(query: PageQuery, intended: number): void {
    const { requests, now, random, coding, conditional, check } = this.#options;
    const path = (query.walks ? this.#next.get(query.path) : undefined) ?? query.path;
    const tag = random() < conditional ? this.#tags.get(path) : undefined;
    this.#query = query;
    this.#path = path;
    this.#sent = now();
    this.#intended = Math.min(intended, this.#sent);
    this.#isConditional = tag !== undefined;
    this.#head = null;
    this.#checked = check(query);
    this.#trace = requests.newTrace();
    const form = { coding, accept: 'application/json', tag, trace: this.#trace };
    this.#connection.send(requests.get(path, form), this);
  }

  close(): void {
    this.#connection.close();
  }

  onHead(head: Head): void {
    this.#head = head;
  }

  onBody(piece: Buffer): void {
    this.#checked?.add(piece);
  }

  onEnd(): void {
    const head = this.#head;
    if (head?.status === 304 && this.#isConditional) this.#end('notModified');
    else if (head?.status === 200) this.#endPage(head);
    else this.#end(outcomeOf(head?.status ?? 0));
  }

  onCut(error: Error): void {
    const isUnreachable = 'syscall' in error && error.syscall === 'connect';
    this.#end(error instanceof NotHttp ? 'wrong' : 'cut', error.message, isUnreachable);
  }

  #endPage(head: Head): void {
    const type = head.header('content-type');
    const fault = type?.startsWith('application/json')
      ? (this.#checked?.fault(head.header('content-encoding')) ?? null)
      : `a page has the type ${type}`;
    if (this.#query?.walks) this.#walkOn(this.#query.path, head);
    this.#keepTag(head);
    this.#end(fault === null ? 'ok' : 'wrong', fault);
  }

  #walkOn(begin: string, head: Head): void {
    const query = NEXT.exec(head.header('link') ?? '')?.[1];
    if (query === undefined) this.#next.delete(begin);
    else this.#next.set(begin, begin.replace(/\?.*$/, '') + query);
  }

  #keepTag(head: Head): void {
    const tag = head.header('etag');
    if (tag !== null && (this.#tags.has(this.#path) || this.#tags.size < MOST_TAGS))
      this.#tags.set(this.#path, tag);
  }

  #end(outcome: Outcome, reason: string | null = null, isUnreachable = false): void {
    const head = this.#head;
    const query = this.#query;
    const path = this.#path;
    const traceId = this.#trace;
    const waited = this.#sent - this.#intended;
    if (!query) throw new TypeError('an answer without a request');
    this.#query = null;
    const shown = () => ({
      kind: 'page' as const,
      waited: Math.round(waited * 10) / 10,
      query: query.walks ? nameOf({ ...query, path }) : path,
      status: head?.status ?? 0,
      requestId: head?.header('x-request-id') ?? null,
      traceId,
    });
    this.#options.onEnd(this, { outcome, intended: this.#intended, shown, reason, isUnreachable });
  }
}
