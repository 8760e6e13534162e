/** A table of any number of rows, of which only those in sight are in the page. */
import { sortsOf } from './allowed-queries.ts';
import type { Blocks } from './row-cache.ts';
import { classOf, columnsOf, type Column } from './columns.ts';
import { make } from './dom.ts';
import type { Row } from './json.ts';
import { Scroller } from './scroller.ts';
import { TableRows } from './table-rows.ts';
import { counted } from './text.ts';
import type { View } from './view.ts';

const ROW_HEIGHT = 30;
/** Rows beyond those in sight that are made as well. */
const BEYOND = 6;
/** Rows whose values decide the kinds and widths of new columns. */
const LOOKED_AT = 100;
/** Pixels around the number of a row, of one of its digits, and digits that there is always place for. */
const NUMBER_AROUND = 20;
const DIGIT = 8;
const LEAST_DIGITS = 6;
/** The share of the width that a pinned key may take. A wider one would leave no place for anything else. */
const MOST_PINNED = 0.9;

interface TableOptions {
  readonly place: HTMLElement;
  readonly view: View;
  readonly blocks: Blocks;
  /** A column was clicked. It may be one that no index orders by. */
  readonly sorted: (path: string) => unknown;
  /** A row was chosen, by click or by Enter. */
  readonly opened: (index: number) => void;
  /** Another row was made the active one by a key. */
  readonly activated: (index: number) => void;
  /** The key Escape was pressed. */
  readonly left: () => void;
}

export class Table {
  readonly rows: TableRows;
  readonly #options: TableOptions;
  readonly #head = make('div.grid-row', { role: 'row', 'aria-rowindex': 1 });
  readonly #scroller: Scroller;
  readonly #resized = new ResizeObserver(() => this.show());
  readonly #leave = new AbortController();
  #columns: readonly Column[] = [];
  #seen: Row | undefined;
  /** Digits, with the marks between them, for which the column of row numbers has place. */
  #digits = 0;

  constructor(options: TableOptions) {
    const { place, view, blocks } = options;
    this.#options = options;
    this.rows = new TableRows(place, blocks);
    this.#scroller = new Scroller(place, ROW_HEIGHT, () => this.show(), this.#leave.signal);
    place.replaceChildren(make('div.grid-head', { role: 'rowgroup' }, this.#head), this.rows.body);
    place.setAttribute('aria-label', `Rows of ${view.resource.name}`);
    place.scrollTop = 0;
    this.#resized.observe(place);
    place.onkeydown = (pressed) => this.#keyPressed(pressed);
    this.rows.body.addEventListener('click', ({ target }) => {
      const row = target instanceof Element ? target.closest<HTMLElement>('[data-row]') : null;
      if (row) this.#open(Number(row.dataset.row));
    });
  }

  /** Shows the rows in sight as they are now, and asks for those that are missing. */
  show(): void {
    const { place, view, blocks } = this.#options;
    const { rows: total, is } = blocks.total;
    const [first, end] = this.#scroller.inSight();
    const rows = rowsBetween(blocks, first, Math.max(end, first + LOOKED_AT));
    if (rows.length > 0 && rows[0] !== this.#seen) {
      this.#seen = rows[0];
      const next = columnsOf(view.resource, rows, this.#columns);
      if (next.length !== this.#columns.length || next.some((one, n) => one !== this.#columns[n]))
        this.#setColumns(next, total);
    }
    // Rows may be counted after the first of them are there.
    if (this.#columns.length > 0 && digitsOf(total) > this.#digits) this.#setColumns(this.#columns, total);
    this.#scroller.setRows(total);
    this.rows.body.style.height = `${this.#scroller.space}px`;
    place.setAttribute('aria-rowcount', String(is === 'atLeast' ? -1 : total + 1));
    const [from, to] = this.#scroller.inSight();
    this.rows.show(Math.max(0, from - BEYOND), Math.min(total, to + BEYOND), this.#scroller);
    blocks.need(from - BEYOND, to + BEYOND - 1);
  }

  /** Makes the active row another one, and brings it into sight. */
  activate(index: number): void {
    this.rows.select(index);
    this.#scroller.reveal(this.rows.active);
    this.show();
  }

  /** Scrolls to a row and makes it the active one. */
  goTo(index: number): void {
    this.show();
    this.#scroller.scrollTo(Math.max(0, index - 2));
    this.rows.select(index);
  }

  close(): void {
    this.#leave.abort();
    this.#resized.disconnect();
    this.#options.place.onkeydown = null;
  }

  #setColumns(columns: readonly Column[], rows: number): void {
    const { place, view, sorted } = this.#options;
    this.#columns = columns;
    this.#digits = digitsOf(rows);
    const number = NUMBER_AROUND + this.#digits * DIGIT;
    const widths = [number, ...columns.map(({ width }) => width)];
    place.style.setProperty('--columns', widths.map((width) => `${width}px`).join(' '));
    place.style.setProperty('--number', `${number}px`);
    place.style.setProperty('--width', `${widths.reduce((sum, width) => sum + width)}px`);
    const key = columns.find(({ isKey }) => isKey)?.width ?? 0;
    place.classList.toggle('pinned', key <= place.clientWidth * MOST_PINNED);
    place.setAttribute('aria-colcount', String(widths.length));
    const numbers = make('div.cell.row-number', { role: 'columnheader' }, make('span.unseen', 'Number'));
    this.#head.replaceChildren(numbers, ...columns.map((column) => headerOf(column, view, sorted)));
    this.rows.setColumns(columns);
  }

  #open(index: number): void {
    this.rows.select(index);
    this.#options.opened(index);
  }

  #keyPressed(pressed: KeyboardEvent): void {
    const { place, blocks, activated, left } = this.#options;
    if (pressed.target !== place || pressed.altKey || pressed.metaKey) return;
    const { active } = this.rows;
    const [first, end] = this.#scroller.inSight();
    const page = Math.max(1, end - first - 2);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: blocks.total.rows - 1,
    };
    const to = moves[pressed.key];
    if (to !== undefined) {
      this.activate(to);
      activated(this.rows.active);
    } else if (pressed.key === 'Enter' || pressed.key === ' ') this.#open(active);
    else if (pressed.key === 'Escape') left();
    else return;
    pressed.preventDefault();
  }
}

/** The head of a column: a click orders by it, or says why it cannot. */
function headerOf(column: Column, view: View, sorted: (path: string) => unknown): HTMLElement {
  const { name, isKey } = column;
  const path = isKey ? 'id' : name;
  // Fields of their own that are called `id` cannot be asked for: the name means the key.
  const canSort = sortsOf(view).includes(path) && (isKey || name !== 'id');
  const [state, turned] =
    view.direction === 1 ? ['ascending', ', descending'] : ['descending', ', ascending'];
  const isSort = canSort && view.sort === path;
  const order = canSort && (isSort ? state : 'none');
  const title = canSort
    ? `Order by ${name}${isSort ? turned : ''}`
    : `${name}: no index orders these rows by it. Click for the reason.`;
  return make(
    'div',
    { role: 'columnheader', class: classOf(column), 'aria-sort': order },
    make(canSort ? 'button.sorts' : 'button.sorts-not', { title, onclick: () => sorted(path) }, name),
  );
}

function rowsBetween(blocks: Blocks, first: number, end: number): readonly Row[] {
  const rows: Row[] = [];
  for (let index = first; index < end; index++) {
    const row = blocks.row(index);
    if (row) rows.push(row);
  }
  return rows;
}

function digitsOf(rows: number): number {
  return Math.max(LEAST_DIGITS, counted(rows).length);
}
