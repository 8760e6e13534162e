/** One row beside the table, with all its fields: nested values open, texts are whole, dates in both forms. */
import { dateText, kindOf, shown } from './cells.ts';
import { filterPaths } from './allowed-queries.ts';
import { rowUrl, type Resource } from './resource.ts';
import { copyButton, element, make } from './dom.ts';
import { isList, isMembers, keyName, keyOf, textOf, type Json, type Row } from './json.ts';

/** Levels of nested values that are open at first, and entries of a list that are shown. */
const OPEN_LEVELS = 2;
const MOST_ENTRIES = 200;

interface DetailOptions {
  readonly closed: () => void;
  /** Another row is wanted: 1 for the next one, -1 for the one before. */
  readonly moved: (by: 1 | -1) => void;
  /** Only rows with this value at a path are wanted. */
  readonly filtered: (path: string, value: Json) => void;
}

export function showDetail(resource: Resource, row: Row, { closed, moved, filtered }: DetailOptions): void {
  const place = element('detail');
  const key = keyOf(row);
  const filters = filterPaths(resource);
  const fields = Object.entries(row).map(([name, value]) => {
    const canFilter = filters.includes(name) && name !== keyName(row) && kindOf(value) !== 'nested';
    const title = `Only rows whose ${name} is ${shown(value)}`;
    const only = make('button.link', { title, onclick: () => filtered(name, value) }, 'only these');
    return make('div.field', make('dt', name, ' ', canFilter && only), entry(value, 0));
  });
  const control = (label: string, onclick: () => void, sign: string) =>
    make('button.small', { 'aria-label': label, onclick }, sign);
  place.replaceChildren(
    make(
      'div.detail-head',
      make('h2', { id: 'detail-title' }, key),
      make(
        'span.buttons',
        control('Row before', () => moved(-1), '\u2191'),
        control('Next row', () => moved(1), '\u2193'),
        control('Close the row', closed, '\u00d7'),
      ),
    ),
    make('dl.fields-list', ...fields),
    make(
      'p.buttons',
      copyButton(() => JSON.stringify(row, null, 2), 'Copy as JSON'),
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
  const place = make('dd', isList(value) || isMembers(value) ? nested(value, level) : plain(value));
  place.className = kindOf(value) ?? 'none';
  return place;
}

function plain(value: Json): HTMLElement | string {
  const text = textOf(value);
  if (kindOf(value) === 'date') return make('span', dateText(text), ' ', make('span.quiet', text));
  if (value === null || text === '') return make('span.quiet', text || 'empty text');
  return text;
}

/** An object or a list that opens. */
function nested(value: readonly Json[] | Readonly<Record<string, Json>>, level: number): HTMLElement {
  const all = Object.entries<Json>(value);
  const [one, many, empty] = isList(value)
    ? ['entry', 'entries', 'empty list']
    : ['field', 'fields', 'empty object'];
  if (all.length === 0) return make('span.quiet', empty);
  const rest = all.length - MOST_ENTRIES;
  const fields = all
    .slice(0, MOST_ENTRIES)
    .map(([name, inner]) => make('div.field', make('dt', name), entry(inner, level + 1)));
  return make(
    'details',
    { open: level < OPEN_LEVELS },
    make('summary', `${all.length} ${all.length === 1 ? one : many}`),
    make('dl', ...fields),
    rest > 0 && make('p.quiet', `${rest} more entries are in the JSON.`),
  );
}
