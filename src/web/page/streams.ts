/** The open streams of the server, by key and resource, as they are now. Whose key may do so can cut one. */
import { getOrMake } from '../../base/get-or-make.ts';
import { ask, open, Refusal } from './api.ts';
import { element, make, on, run, say } from './dom.ts';
import { counted, reasonOf, sizeOf } from './text.ts';

const EVERY_MS = 2000;
/** More are counted, and not listed: the oldest are what one looks for. */
const MOST_LISTED = 200;

interface Stream {
  readonly id: string;
  readonly client: string;
  readonly route: string;
  readonly resource: string;
  readonly type: string;
  readonly since: string;
  readonly rows: number;
  readonly bytes: number;
  readonly state: string;
}

interface StreamList {
  readonly data: readonly Stream[];
  readonly mayCut: boolean;
}

/** A line of the list. It stays while its stream is open, so that a button keeps the focus. */
interface Line {
  readonly row: HTMLElement;
  readonly state: HTMLElement;
  readonly rows: HTMLElement;
  readonly bytes: HTMLElement;
}

export class StreamsPart {
  #url = '';
  #timer: number | undefined;
  #isShown = false;
  #lines = new Map<string, Line>();

  constructor() {
    on(document, 'visibilitychange', () => {
      if (this.#isShown && !document.hidden) this.#look();
    });
  }

  /** Shows the streams of this URL, and again every few seconds while the page is in sight. */
  show(url: string): void {
    this.#url = url;
    this.#isShown = true;
    this.#look();
  }

  leave(): void {
    this.#isShown = false;
    clearTimeout(this.#timer);
  }

  #look(): void {
    clearTimeout(this.#timer);
    run(
      async () => {
        await this.#read();
        this.#again();
      },
      (reason) => {
        say('streams-state', reason);
        this.#again();
      },
    );
  }

  #again(): void {
    clearTimeout(this.#timer);
    if (this.#isShown && !document.hidden) this.#timer = window.setTimeout(() => this.#look(), EVERY_MS);
  }

  async #read(): Promise<void> {
    const { body } = await ask<StreamList>(this.#url, { cache: 'no-store' });
    const { data, mayCut } = body;
    say('streams-open', counted(data.length));
    for (const state of ['waiting', 'following'])
      say(`streams-${state}`, counted(data.filter((one) => one.state === state).length));
    element('streams-sums').replaceChildren(...sumsOf(data));
    const listed = data.slice(0, MOST_LISTED);
    const before = this.#lines;
    this.#lines = new Map(
      listed.map((stream) => [stream.id, before.get(stream.id) ?? this.#lineOf(stream, mayCut)]),
    );
    for (const stream of listed) refresh(this.#lines.get(stream.id), stream);
    for (const [id, { row }] of before) if (!this.#lines.has(id)) row.remove();
    const isNew = [...this.#lines].filter(([id]) => !before.has(id));
    element('streams-rows').append(...isNew.map(([, { row }]) => row)); // the newest are last in any answer
    const more = data.length - listed.length;
    say('streams-more', more > 0 ? `${counted(more)} more are open.` : '');
  }

  #lineOf(stream: Stream, mayCut: boolean): Line {
    const { id, route, type, since, resource, client } = stream;
    const line = { state: make('td'), rows: make('td.number.wide'), bytes: make('td.number') };
    const title = `Cut the stream of ${clientOf(client)}, ${route}`;
    const cut = make('button.small', { onclick: () => this.#cut(id, title), 'aria-label': title }, 'Cut');
    const row = make(
      'tr',
      make('th', { scope: 'row' }, clientOf(client)),
      make('td', { title: `${route}, ${type}` }, resource || route),
      line.state,
      line.rows,
      line.bytes,
      make('td.wide', new Date(since).toLocaleTimeString()),
      make('td', mayCut && cut),
    );
    return { row, ...line };
  }

  /** A stream that has ended meanwhile needs no cut. */
  async #cut(id: string, title: string): Promise<void> {
    try {
      await open(`${this.#url}/${id}`, { method: 'DELETE' });
      say('streams-state', `${title}: done.`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      say('streams-state', `${title}: ${reasonOf(error)}`);
    }
    this.#look();
  }
}

function refresh(line: Line | undefined, { state, rows, bytes }: Stream): void {
  if (!line) return;
  line.state.textContent = state;
  line.rows.textContent = counted(rows);
  line.bytes.textContent = sizeOf(bytes);
}

/** One row for each key and resource, those with the most streams first. */
function sumsOf(streams: readonly Stream[]): HTMLElement[] {
  const groups = new Map<string, Stream[]>();
  for (const stream of streams) {
    const names = JSON.stringify([clientOf(stream.client), stream.resource || stream.route]);
    getOrMake(groups, names, () => []).push(stream);
  }
  const sorted = [...groups].sort(([, a], [, b]) => b.length - a.length);
  return sorted.map(([names, group]) => {
    const [client = '', resource = ''] = JSON.parse(names) as string[];
    const waiting = group.filter(({ state }) => state === 'waiting').length;
    const bytes = group.reduce((sum, one) => sum + one.bytes, 0);
    return make(
      'tr',
      make('th', { scope: 'row' }, client),
      make('td', resource),
      make('td.number', counted(group.length)),
      make('td.number', counted(waiting)),
      make('td.number', sizeOf(bytes)),
    );
  });
}

/** Without keys, nobody is named. */
function clientOf(client: string): string {
  return client === '' ? 'anybody' : client.replace(/^key:/, '');
}
