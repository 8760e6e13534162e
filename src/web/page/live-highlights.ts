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
      () => new ChangeMarks({ ...shown, signal }).follow(),
      (text) => say('live-state', text),
    );
  };
  button.hidden = !canFollow;
  button.onclick = () => become(!isOn);
  become(isOn && canFollow);
}

/** Stops following in this view, whose rows are refused with a reason that is shown already. */
export function leaveLive(): void {
  leave.abort();
  say('live-state', '');
}

/** Marks what changes in a table until its signal aborts. */
class ChangeMarks {
  readonly #shown: ShownTable;
  readonly #seen = { rows: 0, removed: 0 };
  #again: ReturnType<typeof setTimeout> | undefined;
  #counting: ReturnType<typeof setTimeout> | undefined;
  #countedAt = -Infinity;

  constructor(shown: ShownTable) {
    this.#shown = shown;
  }

  async follow(): Promise<void> {
    const { view, blocks, signal } = this.#shown;
    say('live-state', 'waiting for changes');
    const url = new URL(urlOf(view.resource.links.changes ?? '', filterQuery(view)), location.href);
    const steps = provedRows(url, {
      ...PROVING,
      follow: true,
      signal,
      retryForMs: RETRY_MS,
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
        else if (step.kind === 'proof' && step.rows > 0) this.#mark(lines.split('\n').slice(0, -1));
      }
    }
  }

  /** `lines`: rows as they are now, and the keys of rows that are gone, or that no longer match. */
  #mark(lines: readonly string[]): void {
    const { blocks, table } = this.#shown;
    const known = new Set(blocks.rows().map(keyOf));
    const marks = new Map<string, string>();
    for (const line of lines) {
      const isRemoved = line.startsWith(REMOVAL_BEGINNING);
      const value = parseJson(line) as Row;
      const key = keyOf(isRemoved ? (value.removed as Row) : value);
      this.#seen[isRemoved ? 'removed' : 'rows']++;
      marks.set(key, isRemoved ? 'gone' : known.has(key) ? 'changed' : 'new');
    }
    table.rows.mark(marks);
    const { rows, removed } = this.#seen;
    say('live-state', `${rowsOf(rows)} new or changed, ${counted(removed)} gone`);
    // Rows stay in sight as they were, marked, until they are read again.
    this.#again ??= setTimeout(() => this.#readAgain(), AGAIN_MS);
  }

  #readAgain(): void {
    this.#again = undefined;
    if (this.#shown.signal.aborted) return;
    this.#shown.blocks.refresh();
    const wait = Math.max(0, this.#countedAt + COUNT_MS - performance.now());
    this.#counting ??= setTimeout(() => run(() => this.#count()), wait);
  }

  async #count(): Promise<void> {
    this.#countedAt = performance.now();
    this.#counting = undefined;
    await this.#shown.blocks.count(this.#shown.signal, true);
  }
}
