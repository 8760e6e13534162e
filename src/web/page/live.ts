/** Follows the changes of a resource while its table is shown. */
import { mayPass, open, Refused, sleep, urlOf } from './api.ts';
import type { Resource } from './resource.ts';
import { parseJson, type Row } from './json.ts';
import { isAbort, reasonOf } from './text.ts';
import { filterQuery, type View } from './view.ts';

const AGAIN_MS = 1000;

export interface Changes {
  /** Rows as they are now. */
  readonly rows: readonly Row[];
  /** Rows that are gone, or that no longer match: their keys alone. */
  readonly removed: readonly Row[];
}

export interface LiveOptions {
  readonly resource: Resource;
  readonly view: View;
  readonly signal: AbortSignal;
  readonly changed: (changes: Changes) => void;
  /** The server no longer has all changes, so the page must read everything again. */
  readonly lost: () => void;
  readonly state: (words: string) => void;
}

/** Follows until the signal aborts. A lost connection goes on where it was. */
export async function follow(options: LiveOptions): Promise<void> {
  const { signal, state, lost } = options;
  let since: string | null = null;
  while (!signal.aborted) {
    try {
      since = await followOnce(options, since);
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Refused && error.status === 410) {
        since = null;
        lost();
      } else if (!mayPass(error)) throw error;
      state(`Connecting again: ${reasonOf(error)}`);
    }
    await sleep(AGAIN_MS);
  }
}

/** Resolves with the place that was reached when the connection ends. */
async function followOnce(
  { resource, view, signal, changed, state }: LiveOptions,
  since: string | null,
): Promise<string | null> {
  let cursor = since ?? (await nowOf(resource, view, signal));
  const query = filterQuery(resource, view);
  query.set('follow', 'true');
  query.set('since', cursor);
  const response = await open(urlOf(resource.links.changes ?? '', query), { signal, cache: 'no-store' });
  state('');
  try {
    for await (const lines of linesOf(response)) {
      const [rows, removed]: [Row[], Row[]] = [[], []];
      for (const line of lines) {
        const value = parseJson(line) as Line;
        if (/^\{"_?id":/.test(line)) rows.push(value as unknown as Row);
        else if (value.removed) removed.push(value.removed);
        else if (value.error) throw new Error(value.error.detail);
        else cursor = (value.checkpoint ?? value.end)?.cursor ?? cursor;
      }
      if (rows.length + removed.length > 0) changed({ rows, removed });
    }
  } catch (error) {
    if (isAbort(error)) throw error;
    state(`Connecting again: ${reasonOf(error)}`);
  }
  return cursor;
}

interface Line {
  readonly removed?: Row;
  readonly checkpoint?: { readonly cursor?: string };
  readonly end?: { readonly cursor?: string };
  readonly error?: { readonly detail: string };
}

/** The place from which changes follow now. */
async function nowOf(resource: Resource, view: View, signal: AbortSignal): Promise<string> {
  const url = urlOf(resource.links.changes ?? '', filterQuery(resource, view));
  const response = await open(url, { signal, cache: 'no-store' });
  const [first = ''] = (await response.text()).split('\n');
  const { checkpoint, end } = parseJson(first) as Line;
  const cursor = (checkpoint ?? end)?.cursor;
  if (cursor === undefined) throw new Error('The server returned no cursor to follow from.');
  return cursor;
}

/** The lines of an NDJSON answer, as they come. */
async function* linesOf(response: Response): AsyncGenerator<readonly string[], void, undefined> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      if (lines.length > 0) yield lines;
    }
  } finally {
    await reader.cancel();
  }
}
