/** Follows the changes of the rows in the table while `Live` is on, and marks what changes, appears and goes. */
import { REMOVAL_BEGINNING } from '../../pull/lines.ts';
import { provedRows } from '../../pull/proved-rows.ts';
import { PROVING } from './api.ts';
import type { Blocks } from './row-cache.ts';
import { element, run, say } from './dom.ts';
import { keyOf, parseJson, type Row } from './json.ts';
import type { Table } from './table.ts';
import { counted, rowsOf } from './text.ts';
import { filterQuery, urlOf, type View } from './view.ts';

/** How long a mark stays, and how soon rows are read and counted again after changes. Milliseconds. */
const MARKED_MS = 4000;
const AGAIN_MS = 700;
const COUNT_MS = 3000;
/** A lost connection is tried again for so long without an answer. Milliseconds. */
const RETRY_MS = 1_000_000_000;

interface ShownTable {
  readonly view: View;
  readonly blocks: Blocks;
  readonly table: Table;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
}

let isOn = false;
let leave = new AbortController();
let appeared = (): void => undefined;

/** Marks rows that came into the table after their change was reported. Call this when rows were read. */
export function markAppeared(): void {
  appeared();
}

/** Sets up the button for the table that is shown now. Live stays on from view to view. */
export function showLive(shown: ShownTable): void {
  const button = element('live');
  const canFollow = shown.view.resource.links.changes !== undefined;
  const become = (next: boolean) => {
    isOn = next;
    button.setAttribute('aria-pressed', String(isOn));
    leave.abort();
    appeared = () => undefined;
    say('live-state', '');
    if (!isOn) return;
    leave = new AbortController();
    const signal = AbortSignal.any([shown.signal, leave.signal]);
    run(
      () => markChanges({ ...shown, signal }),
      (text) => say('live-state', text),
    );
  };
  button.hidden = !canFollow;
  button.onclick = () => become(!isOn);
  become(isOn && canFollow);
}

async function markChanges({ view, blocks, table, signal }: ShownTable): Promise<void> {
  const seen = { rows: 0, removed: 0 };
  const unknown = new Set<string>();
  let again: ReturnType<typeof setTimeout> | undefined;
  let counting: ReturnType<typeof setTimeout> | undefined;
  let countedAt = -Infinity;

  const markFor = (key: string, mark: string) => {
    table.mark(key, mark);
    setTimeout(() => table.mark(key, ''), MARKED_MS);
  };
  const readAgain = () => {
    again = undefined;
    if (signal.aborted) return;
    blocks.refresh();
    counting ??= setTimeout(() => run(count), Math.max(0, countedAt + COUNT_MS - performance.now()));
  };
  const count = async () => {
    countedAt = performance.now();
    counting = undefined;
    await blocks.count(signal, true);
  };
  /** `lines`: rows as they are now, and the keys of rows that are gone, or that no longer match. */
  const changed = (lines: readonly string[]) => {
    const known = new Map([...blocks.rows()].map(([index, row]) => [keyOf(row), index]));
    for (const line of lines) {
      const isRemoved = line.startsWith(REMOVAL_BEGINNING);
      const value = parseJson(line) as Row;
      const row = isRemoved ? (value.removed as Row) : value;
      const [key, index] = [keyOf(row), known.get(keyOf(row))];
      seen[isRemoved ? 'removed' : 'rows']++;
      if (isRemoved && index !== undefined) markFor(key, 'gone');
      else if (!isRemoved && index === undefined) unknown.add(key);
      else if (index !== undefined) {
        blocks.replace(index, row);
        markFor(key, 'changed');
      }
    }
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
  say('live-state', 'waiting for changes');
  const url = new URL(urlOf(view.resource.links.changes ?? '', filterQuery(view)), location.href);
  const steps = provedRows(url, {
    ...{ ...PROVING, follow: true, signal, retryForMs: RETRY_MS },
    onInterrupted: ({ message }) => say('live-state', `Connecting again: ${message}`),
  });
  let unproved: Uint8Array<ArrayBuffer>[] = [];
  for await (const step of steps) {
    if (step.kind === 'rows') unproved.push(step.bytes.slice());
    else {
      const lines = await new Blob(unproved).text();
      unproved = [];
      // The server no longer has all changes, so everything is read again.
      if (step.kind === 'restart') blocks.refresh();
      else if (step.kind === 'proof' && step.rows > 0) changed(lines.split('\n').slice(0, -1));
    }
  }
}
