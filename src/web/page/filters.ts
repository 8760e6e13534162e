/** The filters beside the table: the values of each indexed field with their counts, and ranges. */
import {
  canCombine,
  filterPaths,
  filtersBefore,
  sortsOf,
  withFilter,
  withoutFilter,
  withRange,
} from './allowed-queries.ts';
import { kindOf, shown } from './cells.ts';
import { ask } from './api.ts';
import { element, make, on, run, say } from './dom.ts';
import { textOf, type Json } from './json.ts';
import { counted, isAbort, listed, reasonOf } from './text.ts';
import { filterQuery, shownText, spelled, urlOf, wordsOf, type View } from './view.ts';

/** The number of fields whose values are open at first. */
const OPEN_AT_FIRST = 2;

/** Values that one request lists, and requests until they are counted. */
const [LISTED, MOST_ROUNDS] = [20, 3];

/** A view that is shown. */
export interface Shown {
  readonly view: View;
  /** Shows another view of the resource. */
  readonly go: (view: View) => void;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
}

/** Whether the fields of a resource were opened or closed by hand, by the name of both. */
const opened = new Map<string, boolean>();

export function showFilters(now: Shown): void {
  const { view } = now;
  const focused = document.activeElement?.id ?? '';
  const filters = filterPaths(view.resource);
  const ranges = sortsOf(view).filter((path) => path !== 'id');
  const paths = [...new Set([...filters, ...ranges])];
  element('filter-box').hidden = paths.length === 0;
  say('filter-count', view.equals.size > 0 ? String(view.equals.size) : '');
  const groups = paths.map((path, n) => {
    const name = `${view.resource.name} ${path}`;
    const group = make('details.facet', make('summary', path));
    group.open = opened.get(name) ?? (n < OPEN_AT_FIRST || view.equals.has(path));
    if (filters.includes(path)) addValues(now, path, group, focused);
    if (ranges.includes(path)) group.append(rangeForm(now, path));
    on(group, 'toggle', () => opened.set(name, group.open));
    return group;
  });
  element('facets').replaceChildren(...groups);
  showChips(now);
}

/** Lists the values of a field when its group is opened. `focused`: the id of what had the focus, and gets it again. */
function addValues(now: Shown, path: string, group: HTMLDetailsElement, focused: string): void {
  const { resource, equals } = now.view;
  const others = [...equals.keys()].filter((one) => !canCombine(resource, [one, path]));
  const place = make('div.facet-values');
  if (others.length > 0 && !equals.has(path)) {
    const replaced = listed(others);
    const text = `No index has ${listed([path, ...others])} together. A choice here replaces ${replaced}.`;
    group.append(make('p.hint', text));
  }
  group.append(place);
  let isLoaded = false;
  const load = async () => {
    if (isLoaded || !group.open) return;
    isLoaded = true;
    await fill(place, now, path);
    if (focused !== '' && document.activeElement === document.body) document.getElementById(focused)?.focus();
  };
  on(group, 'toggle', load);
  run(load);
}

/** Lists the values of a field. */
async function fill(place: HTMLElement, now: Shown, path: string): Promise<void> {
  const list = make('ul');
  const end = make('div', make('p.hint', 'Counting\u2026'));
  place.replaceChildren(list, end);
  const more = async (cursor: string | null) => {
    try {
      const facet = await listFacet(now.view, path, cursor, now.signal);
      const plain = facet?.values.filter(({ value }) => kindOf(value) !== 'nested') ?? [];
      list.append(...plain.map((value) => valueItem(now, path, value)));
      if (facet) end.replaceChildren(...afterValues(now, path, facet, more));
      else end.replaceChildren(make('p.hint', 'Its index has other fields before it: filter by them first.'));
    } catch (error) {
      if (!isAbort(error)) end.replaceChildren(make('p.hint', reasonOf(error)));
    }
  };
  await more(null);
}

interface FacetValue {
  readonly value: Json;
  /** The text that a query has for it. */
  readonly text: string;
  /** The number of rows. Missing: unknown. */
  readonly count?: number | null;
}

interface Facet {
  readonly values: readonly FacetValue[];
  /** Continues the list. Null: these are all. */
  readonly next: string | null;
}

/** Lists values of a path under the filters of a view. Null when other filters must be given first. */
async function listFacet(
  view: View,
  path: string,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Facet | null> {
  const within = filtersBefore(view, path);
  if (within === null) return null;
  const equals = new Map([...view.equals].filter(([name]) => within.includes(name)));
  const query = filterQuery(
    { ...view, equals },
    { field: path, limit: LISTED, count: 'exact', ...(cursor !== null && { cursor }) },
  );
  const { data, page } = await countedValues(urlOf(`${view.resource.links.page}/values`, query), signal);
  const texts = data.map(({ value }) => textOf(value));
  const values = data.map((one, n) => {
    const isTwin = texts.some((text, other) => other !== n && text === texts[n]);
    return { ...one, text: spelled(one.value, isTwin) };
  });
  return { values, next: page.hasMore ? page.nextCursor : null };
}

/** The values with their counts. A busy server may need more than the second that it takes for one answer. */
async function countedValues(url: string, signal: AbortSignal): Promise<ValuesBody> {
  for (let rest = MOST_ROUNDS; ; rest--) {
    const { body } = await ask<ValuesBody>(url, { signal });
    if (rest === 1 || body.countsAre !== 'partial') return body;
  }
}

interface ValuesBody {
  readonly countsAre?: 'exact' | 'partial';
  readonly data: readonly Omit<FacetValue, 'text'>[];
  readonly page: { readonly hasMore: boolean; readonly nextCursor: string | null };
}

function valueItem({ view, go }: Shown, path: string, { value, text, count }: FacetValue): HTMLElement {
  const isChosen = view.equals.get(path) === text;
  const words = value === null ? 'empty' : value === '' ? 'empty text' : shown(value);
  const choice = make(
    'button.value',
    { id: `value-${path}-${text}`, 'aria-pressed': String(isChosen) },
    { onclick: () => go(isChosen ? withoutFilter(view, path) : withFilter(view, path, text)) },
    make('span.value-text', { title: words }, words),
    make('span.value-count', typeof count === 'number' && counted(count)),
  );
  return make('li', choice);
}

/** What follows the values: more of them, and a place to type one. */
function afterValues(
  { view, go }: Shown,
  path: string,
  { values, next }: Facet,
  more: (cursor: string) => Promise<void>,
): readonly HTMLElement[] {
  if (next === null && values.length > 0) return [];
  const input = make('input', {
    ...{ name: path, autocomplete: 'off', placeholder: 'another value' },
    'aria-label': `Another value of ${path}`,
  });
  const filter = () => input.value !== '' && go(withFilter(view, path, input.value));
  const form = make('form.inline', { onsubmit: filter }, input, make('button.small', 'Filter'));
  return next === null ? [form] : [make('button.link', { onclick: () => more(next) }, 'More values'), form];
}

function rangeForm({ view, go }: Shown, path: string): HTMLElement {
  const bound = (name: string, value: string) => {
    const input = make('input', { name, autocomplete: 'off', id: `range-${path}-${name}` });
    input.value = view.sort === path ? value : '';
    return input;
  };
  const [from, to] = [bound('from', view.low), bound('to', view.high)];
  return make(
    'form.range',
    { 'aria-label': `Range of ${path}` },
    { onsubmit: () => go(withRange(view, path, from.value.trim(), to.value.trim())) },
    make('label', make('span', 'from'), from),
    make('label', make('span', 'to'), to),
    make('button.small', 'Apply'),
  );
}

/** The filters that apply, above the table. Each can be taken away. */
function showChips({ view, go }: Shown): void {
  const chips = [...view.equals].map(([path, text]) =>
    chip(`${path} is ${shownText(text)}`, () => go(withoutFilter(view, path))),
  );
  const range = wordsOf({ ...view, equals: new Map() });
  if (range !== '') chips.push(chip(range, () => go({ ...view, low: '', high: '' })));
  element('chips').replaceChildren(...chips);
}

function chip(words: string, remove: () => void): HTMLElement {
  return make('button.chip', { 'aria-label': `Remove the filter: ${words}`, onclick: remove }, words);
}
