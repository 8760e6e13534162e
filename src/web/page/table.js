import { element } from './page.js';

const MOST_COLUMNS = 12;

/** Fills a table with rows. `first` are its first columns, `none` the text for no rows. */
export function fillTable(head, body, rows, { first, none }) {
  // A row that has a field `id` shows its key as `_id`.
  const hasOwnId = rows.some((row) => '_id' in row);
  const names = new Set(hasOwnId ? ['_id', ...first] : first);
  for (const row of rows) for (const name of Object.keys(row)) if (names.size < MOST_COLUMNS) names.add(name);
  const columns = [...names];
  if (rows.length === 0) {
    element(head).replaceChildren();
    element(body).replaceChildren(rowOf('td', [none]));
    return;
  }
  element(head).replaceChildren(rowOf('th', columns));
  element(body).replaceChildren(
    ...rows.map((row) =>
      rowOf(
        'td',
        columns.map((name) => (hasOwnId && !('_id' in row) ? withKey(row) : row)[name]),
      ),
    ),
  );
}

/** A row in a table where other rows show their key as `_id`. */
function withKey({ id, ...others }) {
  return { _id: id, ...others };
}

function rowOf(kind, values) {
  const row = document.createElement('tr');
  for (const value of values) {
    const cell = document.createElement(kind);
    if (kind === 'th') cell.scope = 'col';
    if (typeof value === 'number') cell.className = 'number';
    cell.textContent = typeof value === 'object' ? JSON.stringify(value) : String(value ?? '');
    row.append(cell);
  }
  return row;
}
