/** One row beside the table, with all its fields: nested values open, texts are whole, dates in both forms. */
import { dateText, kindOf, shown } from './cells.ts';
import { rowUrl, type Resource } from './resource.ts';
import { button, copyButton, element, make } from './dom.ts';
import { isList, isMembers, jsonText, keyName, keyOf, textOf, type Json, type Row } from './json.ts';

/** Levels of nested values that are open at first, and entries of a list that are shown. */
const OPEN_LEVELS = 2;
const MOST_ENTRIES = 200;

export interface DetailOptions {
  readonly resource: Resource;
  readonly closed: () => void;
  /** Another row is wanted: 1 for the next one, -1 for the one before. */
  readonly moved: (by: 1 | -1) => void;
  /** The paths that rows can be filtered by, and what does it. */
  readonly filters: readonly string[];
  readonly filtered: (path: string, value: Json) => void;
}

export function showDetail(row: Row, { resource, closed, moved, filters, filtered }: DetailOptions): void {
  const place = element('detail');
  const key = keyOf(row);
  const fields = Object.entries(row).map(([name, value]) => {
    const canFilter = filters.includes(name) && name !== keyName(row) && kindOf(value) !== 'nested';
    const title = `Only rows whose ${name} is ${shown(value)}`;
    const only = button({ class: 'link', title }, () => filtered(name, value), 'only these');
    return make('div', { class: 'field' }, make('dt', {}, name, ' ', canFilter && only), entry(value, 0));
  });
  place.replaceChildren(
    make(
      'div',
      { class: 'detail-head' },
      make('h2', { id: 'detail-title' }, key),
      make(
        'span',
        { class: 'buttons' },
        button({ class: 'small', 'aria-label': 'Row before' }, () => moved(-1), '\u2191'),
        button({ class: 'small', 'aria-label': 'Next row' }, () => moved(1), '\u2193'),
        button({ class: 'small', 'aria-label': 'Close the row' }, closed, '\u00d7'),
      ),
    ),
    make('dl', { class: 'fields-list' }, ...fields),
    make(
      'p',
      { class: 'buttons' },
      copyButton(() => jsonText(row, '  '), 'Copy as JSON'),
      make('a', { href: rowUrl(resource, key), target: '_blank', rel: 'noopener' }, 'Open as JSON'),
    ),
  );
  place.hidden = false;
  place.scrollTop = 0;
}

export function hideDetail(): void {
  const place = element('detail');
  place.hidden = true;
  place.replaceChildren();
}

function entry(value: Json, level: number): HTMLElement {
  return make('dd', { class: kindOf(value) ?? 'none' }, valueNode(value, level));
}

function valueNode(value: Json, level: number): Node {
  if (isList(value) || isMembers(value)) return nested(value, level);
  if (kindOf(value) === 'date')
    return make('span', {}, dateText(textOf(value)), ' ', make('span', { class: 'quiet' }, textOf(value)));
  if (value === null) return make('span', { class: 'quiet' }, 'null');
  if (value === '') return make('span', { class: 'quiet' }, 'empty text');
  return document.createTextNode(textOf(value));
}

/** An object or a list that opens. */
function nested(value: readonly Json[] | Readonly<Record<string, Json>>, level: number): Node {
  const all = isList(value)
    ? value.map((one, n): [string, Json] => [String(n), one])
    : Object.entries<Json>(value);
  if (all.length === 0)
    return make('span', { class: 'quiet' }, isList(value) ? 'empty list' : 'empty object');
  const [one, many] = isList(value) ? ['entry', 'entries'] : ['field', 'fields'];
  const count = `${all.length} ${all.length === 1 ? one : many}`;
  const rest = all.length - MOST_ENTRIES;
  return make(
    'details',
    { open: level < OPEN_LEVELS },
    make('summary', {}, count),
    make(
      'dl',
      {},
      ...all
        .slice(0, MOST_ENTRIES)
        .map(([name, one]) => make('div', { class: 'field' }, make('dt', {}, name), entry(one, level + 1))),
    ),
    rest > 0 && make('p', { class: 'quiet' }, `${rest} more entries are in the JSON.`),
  );
}
