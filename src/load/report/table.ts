import { escaped } from './text.ts';

/** A column of a table of the report. */
export interface Column<Row> {
  readonly name: string;
  /** The text of a cell. */
  readonly of: (row: Row) => string;
  /** `n`: a number, at the right. `q`: a query, which is long. Or the class for a row's cell. */
  readonly is?: 'n' | 'q' | ((row: Row) => string);
}

/** A table that scrolls inside its own width. Empty text when there are no rows. */
export function tableOf<Row>(caption: string, rows: readonly Row[], columns: readonly Column<Row>[]): string {
  if (rows.length === 0) return '';
  const head = columns.map(
    ({ name, is }) => `<th scope="col"${is === 'n' ? ' class="n"' : ''}>${escaped(name)}</th>`,
  );
  const body = rows.map((row) => `<tr>${columns.map((column) => cellOf(row, column)).join('')}</tr>`);
  return `<h2>${escaped(caption)}</h2><div class="table" tabindex="0" role="region" aria-label="${escaped(caption)}"><table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

function cellOf<Row>(row: Row, { of, is }: Column<Row>): string {
  const name = typeof is === 'function' ? is(row) : (is ?? '');
  const text = escaped(of(row));
  return `<td${name && ` class="${name}"`}>${is === 'q' ? `<code>${text}</code>` : text}</td>`;
}
