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

/** How soon rows are read and counted again after changes. Milliseconds. */
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

/** Sets up the button for the table that is shown now. Live stays on from view to view. */
export function showLive(shown: ShownTable): void {
  const button = element('live');
  const canFollow = shown.view.resource.links.changes !== undefined;
  const become = (next: boolean) => {
    isOn = next;
    button.setAttribute('aria-pressed', String(isOn));
    leave.abort();
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
  let again: ReturnType<typeof setTimeout> | undefined;
  let counting: ReturnType<typeof setTimeout> | undefined;
  let countedAt = -Infinity;

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
    const known = new Set(blocks.rows().map(keyOf));
    const marks = new Map<string, string>();
    for (const line of lines) {
      const isRemoved = line.startsWith(REMOVAL_BEGINNING);
      const value = parseJson(line) as Row;
      const key = keyOf(isRemoved ? (value.removed as Row) : value);
      seen[isRemoved ? 'removed' : 'rows']++;
      marks.set(key, isRemoved ? 'gone' : known.has(key) ? 'changed' : 'new');
    }
    table.mark(marks);
    say('live-state', `${rowsOf(seen.rows)} new or changed, ${counted(seen.removed)} gone`);
    // Rows stay in sight as they were, marked, until they are read again.
    again ??= setTimeout(readAgain, AGAIN_MS);
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
