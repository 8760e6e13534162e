/** Reads pages of a view: by cursor where one is known, else by the number of the first row. */
import { ask, open } from './api.ts';
import { parseJson, type Row } from './json.ts';
import { reversed, urlOf, viewQuery, type View } from './view.ts';

export interface Page {
  readonly rows: readonly Row[];
  /** Continues after the last row. Null where the server has none. */
  readonly next: string | null;
  readonly hasMore: boolean;
}

interface PageBody {
  readonly data: readonly Row[];
  readonly page: {
    readonly hasMore: boolean;
    readonly nextCursor: string | null;
    readonly total?: number;
    readonly totalIs?: Total['is'];
  };
}

export interface Total {
  readonly rows: number;
  readonly is: 'exact' | 'estimated' | 'atLeast';
}

type Start = { readonly cursor: string } | { readonly offset?: number };

/** Reads the rows of a view. */
export class Reader {
  readonly view: View;
  readonly #onRead: (url: string, ms: number) => void;

  /** `onRead`: called with the URL of each request for rows, and its milliseconds. */
  constructor(view: View, onRead: (url: string, ms: number) => void) {
    this.view = view;
    this.#onRead = onRead;
  }

  /** Reads `limit` rows, fewer only at the end of the set. */
  async read(start: Start, limit: number, signal: AbortSignal): Promise<Page> {
    let page = await this.#pageOf(this.view, start, limit, signal);
    // A page ends early where no cursor could name its last row.
    while (page.rows.length < limit && page.hasMore && page.next !== null) {
      const rest = await this.#pageOf(this.view, { cursor: page.next }, limit - page.rows.length, signal);
      page = { ...rest, rows: [...page.rows, ...rest.rows] };
    }
    return page;
  }

  /** Reads `limit` rows that `before` others follow to the end of the set, by reading from there. */
  async readFromEnd(before: number, limit: number, signal: AbortSignal): Promise<Page> {
    const { rows } = await this.#pageOf(reversed(this.view), { offset: before }, limit, signal);
    return { rows: rows.toReversed(), next: null, hasMore: before > 0 };
  }

  /** Reads one field of one row, by its number. */
  async peek(offset: number, signal: AbortSignal): Promise<Row | undefined> {
    const query = viewQuery(this.view, { limit: 1, offset, fields: this.view.sort });
    const { body } = await ask<PageBody>(urlOf(this.#path, query), { signal });
    return body.data[0];
  }

  /** Reads the rows after a row that is named by its values, with a cursor behind them. */
  async readAfter(after: string, limit: number, signal: AbortSignal): Promise<Page> {
    const { stream = '' } = this.view.resource.links;
    const url = urlOf(stream, viewQuery(this.view, { after, limit, checkpoints: 'true' }));
    const began = performance.now();
    const text = await (await open(url, { signal })).text();
    this.#onRead(url, performance.now() - began);
    const lines = text.split('\n').filter((line) => line !== '');
    const rows = lines.filter((line) => /^\{"_?id":/.test(line)).map((line) => parseJson(line) as Row);
    const last = parseJson(lines.at(-1) ?? 'null') as { end?: { readonly cursor?: string } } | null;
    if (!last?.end) throw new Error('The connection was cut.');
    return { rows, next: last.end.cursor ?? null, hasMore: rows.length === limit };
  }

  /** Counts the rows of the view. Null where the resource is not counted. */
  async count(signal: AbortSignal): Promise<Total | null> {
    const url = urlOf(this.#path, viewQuery(this.view, { limit: 1, fields: 'id', count: 'exact' }));
    const { total, totalIs = 'estimated' } = (await ask<PageBody>(url, { signal })).body.page;
    return total === undefined ? null : { rows: total, is: totalIs };
  }

  get #path(): string {
    return this.view.resource.links.page ?? '';
  }

  async #pageOf(of: View, start: Start, limit: number, signal: AbortSignal): Promise<Page> {
    const url = urlOf(this.#path, viewQuery(of, { limit, ...start }));
    const { body, ms } = await ask<PageBody>(url, { signal });
    this.#onRead(url, ms);
    const { data, page } = body;
    return { rows: data, next: page.nextCursor, hasMore: page.hasMore };
  }
}
