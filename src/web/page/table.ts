/** A table of any number of rows, of which only those in sight are in the page. */
import type { Blocks } from './row-cache.ts';
import { dateText, kindOf } from './cells.ts';
import { cellOf, cellText, columnsOf, type Column } from './columns.ts';
import type { Resource } from './resource.ts';
import { make } from './dom.ts';
import { Head, type Order } from './table-header.ts';
import { keyOf, type Row } from './json.ts';
import { Scroller } from './scroller.ts';
import { counted } from './text.ts';

const ROW_HEIGHT = 30;
/** Rows beyond those in sight that are made as well. */
const BEYOND = 6;
/** Rows whose values decide the kinds and widths of new columns. */
const LOOKED_AT = 100;
/** Pixels around the number of a row, of one of its digits, and digits that there is always place for. */
const [NUMBER_AROUND, DIGIT, LEAST_DIGITS] = [20, 7, 6];
/** The share of the width that a pinned key may take. A wider one would leave no place for anything else. */
const MOST_PINNED = 0.9;

export interface TableOptions {
  readonly place: HTMLElement;
  readonly resource: Resource;
  readonly order: Order;
  readonly blocks: () => Blocks;
  /** A row was chosen, by click or by Enter. */
  readonly opened: (index: number, row: Row) => void;
  /** Another row was made the active one by a key. */
  readonly activated: (index: number) => void;
  /** The key Escape was pressed. */
  readonly left: () => void;
}

export class Table {
  readonly #options: TableOptions;
  readonly #body: HTMLElement;
  readonly #head: Head;
  readonly #scroller: Scroller;
  readonly #made = new Map<number, HTMLElement>();
  readonly #marks = new Map<string, string>();
  readonly #resized: ResizeObserver;
  readonly #leave = new AbortController();
  #columns: readonly Column[] = [];
  #active = 0;
  #seen: Row | undefined;

  constructor(options: TableOptions) {
    this.#options = options;
    const { place, resource, order } = options;
    this.#body = make('div', { role: 'rowgroup', class: 'grid-body' });
    this.#head = new Head(order);
    place.replaceChildren(this.#head.element, this.#body);
    place.setAttribute('aria-label', `Rows of ${resource.name}`);
    place.scrollTop = 0;
    this.#scroller = new Scroller(place, ROW_HEIGHT, () => this.show(), this.#leave.signal);
    this.#resized = new ResizeObserver(() => this.show());
    this.#resized.observe(place);
    place.onkeydown = (pressed) => this.#pressed(pressed);
    this.#body.addEventListener('click', ({ target }) => {
      const row = target instanceof Element ? target.closest<HTMLElement>('[data-row]') : null;
      if (row) this.open(Number(row.dataset.row));
    });
  }

  close(): void {
    this.#leave.abort();
    this.#resized.disconnect();
    this.#options.place.onkeydown = null;
  }

  /** Shows the rows in sight as they are now, and asks for those that are missing. */
  show(): void {
    const { place, resource, blocks } = this.#options;
    const { total } = blocks();
    const [first, end] = this.#scroller.inSight;
    const rows = rowsBetween(blocks(), first, Math.max(end, first + LOOKED_AT));
    if (rows.length > 0 && rows[0] !== this.#seen) {
      this.#seen = rows[0];
      const columns = columnsOf(resource, rows, this.#columns);
      if (columns.length !== this.#columns.length || columns.some((one, n) => one !== this.#columns[n]))
        this.#setColumns(columns, total.rows);
    }
    this.#scroller.setRows(total.rows);
    this.#body.style.height = `${this.#scroller.space}px`;
    place.setAttribute('aria-rowcount', String(total.is === 'atLeast' ? -1 : total.rows + 1));
    this.#place();
    const [from, to] = this.#scroller.inSight;
    blocks().need(from - BEYOND, to + BEYOND - 1);
  }

  /** Scrolls to a row and makes it the active one. */
  goTo(index: number): void {
    this.show();
    this.#scroller.scrollTo(Math.max(0, index - 2));
    this.#activate(index);
  }

  /** Opens a row, if it is there. */
  open(index: number): void {
    const row = this.#options.blocks().row(index);
    this.#activate(index);
    if (row) this.#options.opened(index, row);
  }

  /** Makes the active row another one, and brings it into sight. */
  activate(index: number): void {
    this.#activate(index);
    this.#scroller.reveal(this.#active);
    this.show();
  }

  /** Marks the row with this key, until the mark is taken away by an empty text. */
  mark(key: string, mark: string): void {
    if (mark === '') this.#marks.delete(key);
    else this.#marks.set(key, mark);
    for (const row of this.#made.values()) if (row.dataset.key === key) row.dataset.mark = mark;
  }

  #activate(index: number): void {
    const { total } = this.#options.blocks();
    this.#active = Math.max(0, Math.min(index, total.rows - 1));
    for (const [at, row] of this.#made) row.setAttribute('aria-selected', String(at === this.#active));
    this.#point();
  }

  #setColumns(columns: readonly Column[], rows: number): void {
    this.#columns = columns;
    const { place } = this.#options;
    const number = NUMBER_AROUND + Math.max(LEAST_DIGITS, counted(rows).length) * DIGIT;
    const widths = [number, ...columns.map(({ width }) => width)];
    place.style.setProperty('--columns', widths.map((width) => `${width}px`).join(' '));
    place.style.setProperty('--number', `${number}px`);
    place.style.setProperty('--width', `${widths.reduce((sum, width) => sum + width)}px`);
    const key = columns.find(({ isKey }) => isKey)?.width ?? 0;
    place.classList.toggle('pinned', key <= place.clientWidth * MOST_PINNED);
    place.setAttribute('aria-colcount', String(widths.length));
    this.#head.show(columns);
    for (const row of this.#made.values()) row.remove();
    this.#made.clear();
  }

  /** Makes the rows in sight, and removes the others. */
  #place(): void {
    const blocks = this.#options.blocks();
    const [first, end] = this.#scroller.inSight;
    const [from, to] = [Math.max(0, first - BEYOND), Math.min(blocks.total.rows, end + BEYOND)];
    for (const [index, made] of this.#made)
      if (index < from || index >= to) {
        made.remove();
        this.#made.delete(index);
      }
    // From the last to the first, so that each is put before the next one: readers of the screen follow this order.
    for (let index = to - 1; index >= from; index--) {
      const row = blocks.row(index);
      let made = this.#made.get(index);
      if (!made) {
        made = make('div', { role: 'row', class: 'grid-row', id: `row-${index}`, 'data-row': index });
        made.setAttribute('aria-selected', String(index === this.#active));
        this.#made.set(index, made);
        this.#body.insertBefore(made, this.#made.get(index + 1) ?? null);
      }
      made.style.transform = `translateY(${this.#scroller.topOf(index)}px)`;
      this.#fill(made, index, row);
    }
    this.#point();
  }

  /** Names the active row to screen readers, while it is in the page. */
  #point(): void {
    const { place } = this.#options;
    const active = this.#made.get(this.#active);
    if (active) place.setAttribute('aria-activedescendant', active.id);
    else place.removeAttribute('aria-activedescendant');
  }

  #fill(made: HTMLElement, index: number, row: Row | undefined): void {
    if (shownIn.get(made) === (row ?? null)) return;
    shownIn.set(made, row ?? null);
    made.setAttribute('aria-rowindex', String(index + 2));
    const hasOwnId = this.#columns[0]?.name === '_id';
    const number = this.#options.blocks().beginsInside ? '' : counted(index + 1);
    const cells = this.#columns.map((column) => {
      const value = row && cellOf(row, column.name, hasOwnId);
      const text = row ? cellText(value, column) : '';
      const cell = make(
        'div',
        { role: 'gridcell', class: `cell ${column.kind}${column.isKey ? ' key' : ''}` },
        text,
      );
      if (typeof value === 'string' && kindOf(value) === 'date') cell.title = `${dateText(value)} (${value})`;
      return cell;
    });
    made.replaceChildren(make('div', { role: 'rowheader', class: 'cell row-number' }, number), ...cells);
    made.classList.toggle('coming', !row);
    made.dataset.key = row ? keyOf(row) : '';
    made.dataset.mark = this.#marks.get(made.dataset.key) ?? '';
  }

  #pressed(pressed: KeyboardEvent): void {
    if (pressed.target !== this.#options.place || pressed.altKey || pressed.metaKey) return;
    const [first, end] = this.#scroller.inSight;
    const page = Math.max(1, end - first - 2);
    const last = this.#options.blocks().total.rows - 1;
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: this.#active + 1,
      ArrowUp: this.#active - 1,
      PageDown: this.#active + page,
      PageUp: this.#active - page,
      Home: 0,
      End: last,
    };
    const to = moves[pressed.key];
    if (to !== undefined) {
      this.activate(to);
      this.#options.activated(this.#active);
    } else if (pressed.key === 'Enter' || pressed.key === ' ') this.open(this.#active);
    else if (pressed.key === 'Escape') this.#options.left();
    else return;
    pressed.preventDefault();
  }
}

/** The row that an element shows; null: it waits for one. */
const shownIn = new WeakMap<HTMLElement, Row | null>();

function rowsBetween(blocks: Blocks, first: number, end: number): readonly Row[] {
  const rows: Row[] = [];
  for (let index = first; index < end; index++) {
    const row = blocks.row(index);
    if (row) rows.push(row);
  }
  return rows;
}
