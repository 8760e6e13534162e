/** A table of any number of rows, of which only those in sight are in the page. */
import { sortsOf } from './allowed-queries.ts';
import type { Blocks } from './row-cache.ts';
import { dateText, kindOf } from './cells.ts';
import { cellOf, cellText, columnsOf, type Column } from './columns.ts';
import { make } from './dom.ts';
import { keyOf, type Row } from './json.ts';
import { createScroller } from './scroller.ts';
import { counted } from './text.ts';
import type { View } from './view.ts';

const ROW_HEIGHT = 30;
/** Rows beyond those in sight that are made as well. */
const BEYOND = 6;
/** Rows whose values decide the kinds and widths of new columns. */
const LOOKED_AT = 100;
/** Pixels around the number of a row, of one of its digits, and digits that there is always place for. */
const [NUMBER_AROUND, DIGIT, LEAST_DIGITS] = [20, 7, 6];
/** The share of the width that a pinned key may take. A wider one would leave no place for anything else. */
const MOST_PINNED = 0.9;
/** How long a mark stays. Milliseconds. */
const MARKED_MS = 4000;

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

export type Table = ReturnType<typeof createTable>;

export function createTable({ place, view, blocks, sorted, opened, activated, left }: TableOptions) {
  const head = make('div.grid-row', { role: 'row', 'aria-rowindex': 1 });
  const body = make('div.grid-body', { role: 'rowgroup' });
  const leave = new AbortController();
  /** The rows that are in the page, by their numbers, and the row that each shows; null: it waits for one. */
  const made = new Map<number, HTMLElement>();
  const shownIn = new WeakMap<HTMLElement, Row | null>();
  /** What is said of the rows with these keys: see `mark`. */
  const marks = new Map<string, string>();
  let columns: readonly Column[] = [];
  let active = 0;
  let seen: Row | undefined;

  /** Shows the rows in sight as they are now, and asks for those that are missing. */
  const show = (): void => {
    const total = blocks.total();
    const [first, end] = scroller.inSight();
    const rows = rowsBetween(blocks, first, Math.max(end, first + LOOKED_AT));
    if (rows.length > 0 && rows[0] !== seen) {
      seen = rows[0];
      const next = columnsOf(view.resource, rows, columns);
      if (next.length !== columns.length || next.some((one, n) => one !== columns[n]))
        setColumns(next, total.rows);
    }
    scroller.setRows(total.rows);
    body.style.height = `${scroller.space()}px`;
    place.setAttribute('aria-rowcount', String(total.is === 'atLeast' ? -1 : total.rows + 1));
    placeRows();
    const [from, to] = scroller.inSight();
    blocks.need(from - BEYOND, to + BEYOND - 1);
  };
  const scroller = createScroller(place, ROW_HEIGHT, show, leave.signal);

  const setColumns = (next: readonly Column[], rows: number): void => {
    columns = next;
    const number = NUMBER_AROUND + Math.max(LEAST_DIGITS, counted(rows).length) * DIGIT;
    const widths = [number, ...columns.map(({ width }) => width)];
    place.style.setProperty('--columns', widths.map((width) => `${width}px`).join(' '));
    place.style.setProperty('--number', `${number}px`);
    place.style.setProperty('--width', `${widths.reduce((sum, width) => sum + width)}px`);
    const key = columns.find(({ isKey }) => isKey)?.width ?? 0;
    place.classList.toggle('pinned', key <= place.clientWidth * MOST_PINNED);
    place.setAttribute('aria-colcount', String(widths.length));
    const numbers = make('div.cell.row-number', { role: 'columnheader' }, make('span.unseen', 'Number'));
    head.replaceChildren(numbers, ...columns.map((column) => headerOf(column, view, sorted)));
    for (const row of made.values()) row.remove();
    made.clear();
  };

  /** Makes the rows in sight, and removes the others. */
  const placeRows = (): void => {
    const [first, end] = scroller.inSight();
    const [from, to] = [Math.max(0, first - BEYOND), Math.min(blocks.total().rows, end + BEYOND)];
    for (const [index, element] of made)
      if (index < from || index >= to) {
        element.remove();
        made.delete(index);
      }
    // From the last to the first, so that each is put before the next one: readers of the screen follow this order.
    for (let index = to - 1; index >= from; index--) {
      let element = made.get(index);
      if (!element) {
        const isActive = String(index === active);
        element = make(
          'div.grid-row',
          { role: 'row', id: `row-${index}`, 'data-row': index },
          { 'aria-rowindex': index + 2, 'aria-selected': isActive },
        );
        made.set(index, element);
        body.insertBefore(element, made.get(index + 1) ?? null);
      }
      element.style.transform = `translateY(${scroller.topOf(index)}px)`;
      fill(element, index, blocks.row(index));
    }
    point();
  };

  const fill = (element: HTMLElement, index: number, row: Row | undefined): void => {
    if (shownIn.get(element) === (row ?? null)) return;
    shownIn.set(element, row ?? null);
    const number = blocks.beginsInside ? '' : counted(index + 1);
    const cells = columns.map((column) => {
      const value = row && cellOf(row, column);
      const cell = make(
        'div',
        { role: 'gridcell', class: classOf(column) },
        row ? cellText(value, column) : '',
      );
      if (typeof value === 'string' && kindOf(value) === 'date') cell.title = `${dateText(value)} (${value})`;
      return cell;
    });
    element.replaceChildren(make('div.cell.row-number', { role: 'rowheader' }, number), ...cells);
    element.classList.toggle('coming', !row);
    element.dataset.key = row ? keyOf(row) : '';
    showMark(element);
  };

  const showMark = (row: HTMLElement) => (row.dataset.mark = marks.get(row.dataset.key ?? '') ?? '');
  const showMarks = (): void => [...made.values()].forEach(showMark);

  /** Names the active row to screen readers, while it is in the page. */
  const point = (): void => {
    const element = made.get(active);
    if (element) place.setAttribute('aria-activedescendant', element.id);
    else place.removeAttribute('aria-activedescendant');
  };

  const select = (index: number): void => {
    active = Math.max(0, Math.min(index, blocks.total().rows - 1));
    for (const [at, element] of made) element.setAttribute('aria-selected', String(at === active));
    point();
  };

  /** Makes the active row another one, and brings it into sight. */
  const activate = (index: number): void => {
    select(index);
    scroller.reveal(active);
    show();
  };

  const open = (index: number): void => {
    select(index);
    opened(index);
  };

  place.replaceChildren(make('div.grid-head', { role: 'rowgroup' }, head), body);
  place.setAttribute('aria-label', `Rows of ${view.resource.name}`);
  place.scrollTop = 0;
  const resized = new ResizeObserver(show);
  resized.observe(place);
  place.onkeydown = (pressed) => {
    if (pressed.target !== place || pressed.altKey || pressed.metaKey) return;
    const [first, end] = scroller.inSight();
    const page = Math.max(1, end - first - 2);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: blocks.total().rows - 1,
    };
    const to = moves[pressed.key];
    if (to !== undefined) {
      activate(to);
      activated(active);
    } else if (pressed.key === 'Enter' || pressed.key === ' ') open(active);
    else if (pressed.key === 'Escape') left();
    else return;
    pressed.preventDefault();
  };
  body.addEventListener('click', ({ target }) => {
    const row = target instanceof Element ? target.closest<HTMLElement>('[data-row]') : null;
    if (row) open(Number(row.dataset.row));
  });

  return {
    show,
    activate,

    close(): void {
      leave.abort();
      resized.disconnect();
      place.onkeydown = null;
    },

    /** Scrolls to a row and makes it the active one. */
    goTo(index: number): void {
      show();
      scroller.scrollTo(Math.max(0, index - 2));
      select(index);
    },

    /** Marks rows by their keys for a while, those too that come into sight meanwhile. */
    mark(added: ReadonlyMap<string, string>): void {
      for (const [key, mark] of added) marks.set(key, mark);
      showMarks();
      setTimeout(() => {
        for (const key of added.keys()) marks.delete(key);
        showMarks();
      }, MARKED_MS);
    },
  };
}

function classOf({ kind, isKey }: Column): string {
  return `cell ${kind}${isKey ? ' key' : ''}`;
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
