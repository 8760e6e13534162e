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

/** The head of a table, and what shows columns in it. */
export function makeHead({ sort, direction, sorts, asked }: Order) {
  const row = make('div', { role: 'row', class: 'grid-row', 'aria-rowindex': 1 });

  const cellOf = ({ name, kind, isKey }: Column): HTMLElement => {
    const path = isKey ? 'id' : name;
    // Fields of their own that are called `id` cannot be asked for: the name means the key.
    const canSort = sorts.includes(path) && (isKey || name !== 'id');
    const isSort = sort === path && canSort;
    const state = isSort ? (direction === 1 ? 'ascending' : 'descending') : 'none';
    const title = canSort
      ? `Order by ${name}${isSort ? `, ${direction === 1 ? 'descending' : 'ascending'}` : ''}`
      : `${name}: no index orders these rows by it. Click for the reason.`;
    const attributes = { class: canSort ? 'sorts' : 'sorts-not', title, 'data-order': canSort && state };
    return make(
      'div',
      {
        role: 'columnheader',
        class: `cell ${kind}${isKey ? ' key' : ''}`,
        'aria-sort': canSort ? state : undefined,
      },
      button(attributes, () => asked(path), name),
    );
  };

  return {
    element: make('div', { role: 'rowgroup', class: 'grid-head' }, row),
    show(columns: readonly Column[]): void {
      const unseen = make('span', { class: 'unseen' }, 'Number');
      const number = make('div', { role: 'columnheader', class: 'cell row-number' }, unseen);
      row.replaceChildren(number, ...columns.map(cellOf));
    },
  };
}
