/** The head of a table: a click on a column orders by it, or says why it cannot. */
import type { Column } from './columns.ts';
import { button, make } from './dom.ts';

export interface Order {
  readonly sort: string;
  readonly direction: 1 | -1;
  /** The paths that can order the rows that are shown. */
  readonly sorts: readonly string[];
  /** A column was clicked. It may be one that no index orders. */
  readonly asked: (path: string) => unknown;
}

export class Head {
  readonly element: HTMLElement;
  readonly #order: Order;
  readonly #row: HTMLElement;

  constructor(order: Order) {
    this.#order = order;
    this.#row = make('div', { role: 'row', class: 'grid-row', 'aria-rowindex': 1 });
    this.element = make('div', { role: 'rowgroup', class: 'grid-head' }, this.#row);
  }

  show(columns: readonly Column[]): void {
    const number = make('div', { role: 'columnheader', class: 'cell row-number' });
    number.append(make('span', { class: 'unseen' }, 'Number'));
    this.#row.replaceChildren(number, ...columns.map((column) => this.#cell(column)));
  }

  #cell({ name, kind, isKey }: Column): HTMLElement {
    const { sort, direction, sorts, asked } = this.#order;
    const path = isKey ? 'id' : name;
    // Fields of their own that are called `id` cannot be asked for: the name means the key.
    const canSort = sorts.includes(path) && (isKey || name !== 'id');
    const isSort = sort === path && canSort;
    const state = isSort ? (direction === 1 ? 'ascending' : 'descending') : 'none';
    const title = canSort
      ? `Order by ${name}${isSort ? `, ${direction === 1 ? 'descending' : 'ascending'}` : ''}`
      : `${name}: no index orders these rows by it. Click for the reason.`;
    return make(
      'div',
      {
        role: 'columnheader',
        class: `cell ${kind}${isKey ? ' key' : ''}`,
        'aria-sort': canSort ? state : undefined,
      },
      button(
        { class: canSort ? 'sorts' : 'sorts-not', title, 'data-order': canSort && state },
        () => asked(path),
        name,
      ),
    );
  }
}
