/** A table of any number of rows, of which only those in sight are in the page. */
import type { Blocks } from './row-cache.ts';
import { dateText, kindOf } from './cells.ts';
import { cellOf, cellText, columnsOf, type Column } from './columns.ts';
import type { Resource } from './resource.ts';
import { make } from './dom.ts';
import { makeHead, type Order } from './table-header.ts';
import { keyOf, type Row } from './json.ts';
import { createScroller } from './scroller.ts';
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
  readonly blocks: Blocks;
  /** A row was chosen, by click or by Enter. */
  readonly opened: (index: number, row: Row) => void;
  /** Another row was made the active one by a key. */
  readonly activated: (index: number) => void;
  /** The key Escape was pressed. */
  readonly left: () => void;
}

export type Table = ReturnType<typeof createTable>;

export function createTable({ place, resource, order, blocks, opened, activated, left }: TableOptions) {
  const body = make('div', { role: 'rowgroup', class: 'grid-body' });
  const head = makeHead(order);
  const leave = new AbortController();
  /** The rows that are in the page, by their numbers, and the row that each shows; null: it waits for one. */
  const made = new Map<number, HTMLElement>();
  const shownIn = new WeakMap<HTMLElement, Row | null>();
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
      const next = columnsOf(resource, rows, columns);
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
    head.show(columns);
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
        element = make('div', { role: 'row', class: 'grid-row', id: `row-${index}`, 'data-row': index });
        element.setAttribute('aria-selected', String(index === active));
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
    element.setAttribute('aria-rowindex', String(index + 2));
    const hasOwnId = columns[0]?.name === '_id';
    const number = blocks.beginsInside ? '' : counted(index + 1);
    const cells = columns.map((column) => {
      const value = row && cellOf(row, column.name, hasOwnId);
      const text = row ? cellText(value, column) : '';
      const name = `cell ${column.kind}${column.isKey ? ' key' : ''}`;
      const cell = make('div', { role: 'gridcell', class: name }, text);
      if (typeof value === 'string' && kindOf(value) === 'date') cell.title = `${dateText(value)} (${value})`;
      return cell;
    });
    element.replaceChildren(make('div', { role: 'rowheader', class: 'cell row-number' }, number), ...cells);
    element.classList.toggle('coming', !row);
    element.dataset.key = row ? keyOf(row) : '';
    element.dataset.mark = marks.get(element.dataset.key) ?? '';
  };

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

  /** Opens a row, if it is there. */
  const open = (index: number): void => {
    const row = blocks.row(index);
    select(index);
    if (row) opened(index, row);
  };

  place.replaceChildren(head.element, body);
  place.setAttribute('aria-label', `Rows of ${resource.name}`);
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

    /** Marks the row with this key, until the mark is taken away by an empty text. */
    mark(key: string, mark: string): void {
      if (mark === '') marks.delete(key);
      else marks.set(key, mark);
      for (const row of made.values()) if (row.dataset.key === key) row.dataset.mark = mark;
    },
  };
}

function rowsBetween(blocks: Blocks, first: number, end: number): readonly Row[] {
  const rows: Row[] = [];
  for (let index = first; index < end; index++) {
    const row = blocks.row(index);
    if (row) rows.push(row);
  }
  return rows;
}
