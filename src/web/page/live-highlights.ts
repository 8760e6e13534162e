/** Marks in the table what changes, appears and goes, while `Live` is on. */
import type { Blocks } from './row-cache.ts';
import { element, on, run, say } from './dom.ts';
import { keyOf } from './json.ts';
import { follow, type Changes } from './live.ts';
import type { Reader } from './reader.ts';
import type { Table } from './table.ts';
import { counted, rowsOf } from './text.ts';

/** How long a mark stays, and how soon rows are read again after changes. Milliseconds. */
const MARKED_MS = 4000;
const AGAIN_MS = 700;
const COUNT_MS = 3000;

export interface Shown {
  readonly reader: Reader;
  readonly blocks: Blocks;
  readonly table: Table;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
}

let isOn = false;
let leave = new AbortController();

/** Sets up the button for the table that is shown now. Live stays on from view to view. */
export function showLive(shown: Shown): void {
  const button = element('live', HTMLButtonElement);
  const { resource } = shown.reader;
  button.hidden = resource.links.changes === undefined;
  leave.abort();
  const start = () => {
    leave = new AbortController();
    run(
      () => marked(shown, leave.signal),
      (text) => say('live-state', text),
    );
  };
  const become = (next: boolean) => {
    isOn = next;
    button.setAttribute('aria-pressed', String(isOn));
    if (isOn) start();
    else {
      leave.abort();
      say('live-state', '');
    }
  };
  button.onclick = () => become(!isOn);
  become(isOn && !button.hidden);
  on(shown.signal, 'abort', () => leave.abort());
}

async function marked({ reader, blocks, table, signal }: Shown, off: AbortSignal): Promise<void> {
  const { resource, view } = reader;
  const seen = { rows: 0, removed: 0 };
  const unknown = new Set<string>();
  const both = AbortSignal.any([signal, off]);
  let again: ReturnType<typeof setTimeout> | undefined;
  let counting: ReturnType<typeof setTimeout> | undefined;
  let countedAt = -Infinity;

  const markFor = (key: string, mark: string) => {
    table.mark(key, mark);
    setTimeout(() => table.mark(key, ''), MARKED_MS);
  };
  const readAgain = () => {
    again = undefined;
    if (both.aborted) return;
    blocks.refresh();
    counting ??= setTimeout(() => run(count), Math.max(0, countedAt + COUNT_MS - performance.now()));
  };
  const count = async () => {
    countedAt = performance.now();
    counting = undefined;
    const total = await reader.count(both);
    if (total && !blocks.beginsInside) blocks.counted(total, true);
  };
  const changed = ({ rows, removed }: Changes) => {
    const known = new Map([...blocks.rows()].map(([index, row]) => [keyOf(row), index]));
    for (const row of rows) {
      const [key, index] = [keyOf(row), known.get(keyOf(row))];
      if (index === undefined) unknown.add(key);
      else {
        blocks.replace(index, row);
        markFor(key, 'changed');
      }
    }
    for (const row of removed) if (known.has(keyOf(row))) markFor(keyOf(row), 'gone');
    seen.rows += rows.length;
    seen.removed += removed.length;
    say('live-state', `${rowsOf(seen.rows)} new or changed, ${counted(seen.removed)} gone`);
    table.show();
    // Rows that are gone stay in sight, marked, until the rows are read again.
    again ??= setTimeout(readAgain, AGAIN_MS);
  };
  appeared = () => {
    if (unknown.size === 0) return;
    for (const [, row] of blocks.rows()) if (unknown.delete(keyOf(row))) markFor(keyOf(row), 'new');
    // Rows elsewhere in the set are not waited for.
    if (unknown.size > 10_000) unknown.clear();
  };
  both.addEventListener(
    'abort',
    () => {
      clearTimeout(again);
      clearTimeout(counting);
      appeared = () => undefined;
    },
    { once: true },
  );
  say('live-state', 'waiting for changes');
  await follow({
    resource,
    view,
    signal: both,
    changed,
    lost: () => blocks.refresh(),
    state: (words) => {
      if (words !== '') say('live-state', words);
    },
  });
}

let appeared = (): void => undefined;

/** Marks rows that came into the table after their change was reported. Call this when rows were read. */
export function markAppeared(): void {
  appeared();
}
