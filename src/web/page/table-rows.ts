/** The rows of a table that are in the page: those in sight, and a few beyond. */
import { dateText, kindOf } from './cells.ts';
import { cellOf, cellText, classOf, type Column } from './columns.ts';
import { make } from './dom.ts';
import { keyOf, type Row } from './json.ts';
import type { Blocks } from './row-cache.ts';
import type { Scroller } from './scroller.ts';
import { counted } from './text.ts';

/** How long a mark stays. Milliseconds. */
const MARKED_MS = 4000;

export class TableRows {
  readonly body = make('div.grid-body', { role: 'rowgroup' });
  readonly #place: HTMLElement;
  readonly #blocks: Blocks;
  /** The rows by their numbers, and the row that each shows; null: it waits for one. */
  readonly #made = new Map<number, HTMLElement>();
  readonly #shownIn = new WeakMap<HTMLElement, Row | null>();
  /** What is said of the rows with these keys: see `mark`. */
  readonly #marks = new Map<string, string>();
  #columns: readonly Column[] = [];
  /** The number of the active row: see `select`. */
  active = 0;

  /** `place`: the table, which names the active row to screen readers. */
  constructor(place: HTMLElement, blocks: Blocks) {
    this.#place = place;
    this.#blocks = blocks;
  }

  /** Makes the rows anew at the next `show`, with other columns. */
  setColumns(columns: readonly Column[]): void {
    this.#columns = columns;
    for (const row of this.#made.values()) row.remove();
    this.#made.clear();
  }

  /** Makes the rows from number `from` to before `to`, and removes the others. */
  show(from: number, to: number, scroller: Scroller): void {
    for (const [index, element] of this.#made)
      if (index < from || index >= to) {
        element.remove();
        this.#made.delete(index);
      }
    // From the last to the first, so that each is put before the next one: readers of the screen follow this order.
    for (let index = to - 1; index >= from; index--) {
      const element = this.#made.get(index) ?? this.#make(index);
      element.style.transform = `translateY(${scroller.topOf(index)}px)`;
      this.#fill(element, index, this.#blocks.row(index));
    }
    this.#point();
  }

  /** Makes the active row another one. */
  select(index: number): void {
    this.active = Math.max(0, Math.min(index, this.#blocks.total.rows - 1));
    for (const [at, element] of this.#made) element.setAttribute('aria-selected', String(at === this.active));
    this.#point();
  }

  /** Marks rows by their keys for a while, those too that come into sight meanwhile. */
  mark(added: ReadonlyMap<string, string>): void {
    for (const [key, mark] of added) this.#marks.set(key, mark);
    this.#showMarks();
    setTimeout(() => {
      for (const key of added.keys()) this.#marks.delete(key);
      this.#showMarks();
    }, MARKED_MS);
  }

  #make(index: number): HTMLElement {
    const element = make(
      'div.grid-row',
      { role: 'row', id: `row-${index}`, 'data-row': index },
      { 'aria-rowindex': index + 2, 'aria-selected': String(index === this.active) },
    );
    this.#made.set(index, element);
    this.body.insertBefore(element, this.#made.get(index + 1) ?? null);
    return element;
  }

  #fill(element: HTMLElement, index: number, row: Row | undefined): void {
    if (this.#shownIn.get(element) === (row ?? null)) return;
    this.#shownIn.set(element, row ?? null);
    const number = this.#blocks.beginsInside ? '' : counted(index + 1);
    const cells = this.#columns.map((column) => {
      const value = row && cellOf(row, column);
      const text = row ? cellText(value, column) : '';
      const cell = make('div', { role: 'gridcell', class: classOf(column) }, text);
      if (typeof value === 'string' && kindOf(value) === 'date') cell.title = `${dateText(value)} (${value})`;
      return cell;
    });
    element.replaceChildren(make('div.cell.row-number', { role: 'rowheader' }, number), ...cells);
    element.classList.toggle('coming', !row);
    element.dataset.key = row ? keyOf(row) : '';
    this.#showMark(element);
  }

  #showMark(row: HTMLElement): void {
    row.dataset.mark = this.#marks.get(row.dataset.key ?? '') ?? '';
  }

  #showMarks(): void {
    for (const row of this.#made.values()) this.#showMark(row);
  }

  /** Names the active row to screen readers, while it is in the page. */
  #point(): void {
    const element = this.#made.get(this.active);
    if (element) this.#place.setAttribute('aria-activedescendant', element.id);
    else this.#place.removeAttribute('aria-activedescendant');
  }
}
