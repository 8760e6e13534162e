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
import type { Resource } from './resource.ts';
import { counted, isAbort, listed, reasonOf } from './text.ts';
import { filterQuery, shownText, spelled, urlOf, wordsOf, type View } from './view.ts';

/** The number of fields whose values are open at first. */
const OPEN_AT_FIRST = 2;

/** Values that one request lists, and requests until they are counted. */
const LISTED = 20;
const MOST_ROUNDS = 3;

export interface FilterContext {
  readonly view: View;
  /** Shows another view of the resource. */
  readonly go: (view: View) => void;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
}

/** Whether the fields of a resource were opened or closed by hand, by the name of both. */
const opened = new Map<string, boolean>();

export function showFilters(now: FilterContext): void {
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
    if (filters.includes(path) && !(isTime(view.resource, path) && ranges.includes(path)))
      addValues(now, path, group, focused);
    if (ranges.includes(path)) group.append(rangeForm(now, path));
    on(group, 'toggle', () => opened.set(name, group.open));
    return group;
  });
  element('facets').replaceChildren(...groups);
  showChips(now);
}

/** Whether a field has dates alone: nearly each row has one of its own, so a range says more than a list. */
function isTime({ kinds }: Resource, path: string): boolean {
  const known = kinds.find(({ field }) => field === path)?.kinds ?? [];
  return known.length > 0 && known.every((kind) => kind === 'date');
}

/** Lists the values of a field when its group is opened. `focused`: the id of what had the focus, and gets it again. */
function addValues(now: FilterContext, path: string, group: HTMLDetailsElement, focused: string): void {
  const { resource, equals } = now.view;
  const others = [...equals.keys()].filter((one) => !canCombine(resource, [one, path]));
  if (others.length > 0 && !equals.has(path)) {
    const text = `No index has ${listed([path, ...others])} together. A choice here replaces ${listed(others)}.`;
    group.append(make('p.hint', text));
  }
  const list = make('ul');
  const end = make('div', make('p.hint', 'Counting\u2026'));
  group.append(make('div.facet-values', list, end));
  const within = filtersBefore(now.view, path);
  if (within === null) {
    end.replaceChildren(make('p.hint', 'Its index has other fields before it: filter by them first.'));
    return;
  }
  const more = async (cursor: string | null) => {
    try {
      const { data, page, omitted } = await valuesOf(now, path, within, cursor);
      const texts = data.map(({ value }) => textOf(value));
      for (const [n, one] of data.entries()) {
        if (kindOf(one.value) === 'nested') continue;
        const isTwin = texts.some((text, other) => other !== n && text === texts[n]);
        list.append(valueItem(now, path, one, spelled(one.value, isTwin)));
      }
      if (omitted > 0)
        list.append(make('li', make('p.hint', 'Values that no filter can name are left out.')));
      end.replaceChildren(
        ...afterValues(now, path, data.length, page.hasMore ? page.nextCursor : null, more),
      );
    } catch (error) {
      if (!isAbort(error)) end.replaceChildren(make('p.hint', reasonOf(error)));
    }
  };
  let isLoaded = false;
  const load = async () => {
    if (isLoaded || !group.open) return;
    isLoaded = true;
    await more(null);
    if (focused !== '' && document.activeElement === document.body) document.getElementById(focused)?.focus();
  };
  on(group, 'toggle', load);
  run(load);
}

interface FacetValue {
  readonly value: Json;
  /** The number of rows. Missing: unknown. */
  readonly count?: number | null;
}

interface ValuesBody {
  readonly countsAre?: 'exact' | 'partial';
  readonly data: readonly FacetValue[];
  /** Stretches of values that are left out. */
  readonly omitted: number;
  readonly page: { readonly hasMore: boolean; readonly nextCursor: string | null };
}

/** The values of a path under these filters of a view, with their counts. */
async function valuesOf(
  { view, signal }: FilterContext,
  path: string,
  within: readonly string[],
  cursor: string | null,
): Promise<ValuesBody> {
  const equals = new Map([...view.equals].filter(([name]) => within.includes(name)));
  const query = filterQuery(
    { ...view, equals },
    { field: path, limit: LISTED, count: 'exact', ...(cursor !== null && { cursor }) },
  );
  // A busy server may need more than the second that it takes for one answer.
  for (let rest = MOST_ROUNDS; ; rest--) {
    const { body } = await ask<ValuesBody>(urlOf(`${view.resource.links.page ?? ''}/values`, query), {
      signal,
    });
    if (rest === 1 || body.countsAre !== 'partial') return body;
  }
}

function valueItem(
  { view, go }: FilterContext,
  path: string,
  { value, count }: FacetValue,
  text: string,
): HTMLElement {
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

/** What follows the values: more of them, and a place to type one. `next` continues the list. Null: these are all. */
function afterValues(
  { view, go }: FilterContext,
  path: string,
  count: number,
  next: string | null,
  more: (cursor: string) => Promise<void>,
): readonly HTMLElement[] {
  if (next === null && count > 0) return [];
  const input = make('input', {
    name: path,
    autocomplete: 'off',
    placeholder: 'another value',
    'aria-label': `Another value of ${path}`,
  });
  const filter = () => input.value !== '' && go(withFilter(view, path, input.value));
  const form = make('form.inline', { onsubmit: filter }, input, make('button.small', 'Filter'));
  return next === null ? [form] : [make('button.link', { onclick: () => more(next) }, 'More values'), form];
}

function rangeForm({ view, go }: FilterContext, path: string): HTMLElement {
  const bound = (name: string, value: string) => {
    const input = make('input', { name, autocomplete: 'off', id: `range-${path}-${name}` });
    input.value = view.sort === path ? value : '';
    return input;
  };
  const from = bound('from', view.low);
  const to = bound('to', view.high);
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
function showChips({ view, go }: FilterContext): void {
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
