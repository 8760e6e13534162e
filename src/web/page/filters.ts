/** The filters beside the table: the values of each indexed field with their counts, and ranges. */
import { canCombine, filterPaths } from './allowed-queries.ts';
import { kindOf, shown } from './cells.ts';
import type { Resource } from './resource.ts';
import { sortsOf, withFilter, withoutFilter, withRange } from './choose.ts';
import { button, element, hint, make, on, run } from './dom.ts';
import { listFacet, type Facet, type FacetValue } from './facets.ts';
import { counted, isAbort, listed, reasonOf } from './text.ts';
import { shownText, wordsOf, type View } from './view.ts';

/** The number of fields whose values are open at first. */
const OPEN_AT_FIRST = 2;

export interface FilterOptions {
  readonly resource: Resource;
  readonly view: View;
  readonly go: (view: View) => void;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
}

/** Whether the fields of a resource were opened or closed by hand, by the name of both. */
const opened = new Map<string, boolean>();

export function showFilters(options: FilterOptions): void {
  const { resource, view } = options;
  const focused = document.activeElement?.id ?? '';
  const filters = filterPaths(resource.queries);
  const ranges = sortsOf(resource, view).filter((path) => path !== 'id');
  const paths = [...new Set([...filters, ...ranges])];
  element('filter-box').hidden = paths.length === 0;
  element('filter-count').textContent = view.equals.size > 0 ? String(view.equals.size) : '';
  element('facets').replaceChildren(
    ...paths.map((path, n) => {
      const isOpen = opened.get(`${resource.name} ${path}`) ?? (n < OPEN_AT_FIRST || view.equals.has(path));
      return group(options, path, isOpen, {
        canFilter: filters.includes(path),
        hasRange: ranges.includes(path),
        focused,
      });
    }),
  );
  showChips(options);
}

interface Group {
  readonly canFilter: boolean;
  readonly hasRange: boolean;
  /** The id of the element that had the focus before. */
  readonly focused: string;
}

function group(options: FilterOptions, path: string, isOpen: boolean, does: Group): HTMLElement {
  const { resource, view } = options;
  const place = make('div', { class: 'facet-values' });
  const made = make('details', { class: 'facet', open: isOpen }, make('summary', {}, path));
  if (does.canFilter) {
    const others = [...view.equals.keys()].filter((one) => !canCombine(resource.queries, [one, path]));
    if (others.length > 0 && !view.equals.has(path))
      made.append(
        hint(`No index has ${listed([path, ...others])} together. A choice here replaces ${listed(others)}.`),
      );
    made.append(place);
  }
  if (does.hasRange) made.append(rangeForm(options, path));
  let isLoaded = false;
  const load = () => {
    if (isLoaded || !made.open || !does.canFilter) return;
    isLoaded = true;
    run(async () => {
      await fill(place, options, path);
      if (does.focused !== '' && document.activeElement === document.body)
        document.getElementById(does.focused)?.focus();
    });
  };
  on(made, 'toggle', () => {
    opened.set(`${resource.name} ${path}`, made.open);
    load();
  });
  load();
  return made;
}

/** Lists the values of a field. */
async function fill(place: HTMLElement, options: FilterOptions, path: string): Promise<void> {
  const { resource, view, signal } = options;
  const list = make('ul', {});
  place.replaceChildren(list, hint('Counting\u2026'));
  const more = async (cursor: string | null) => {
    try {
      const facet = await listFacet(resource, view, path, cursor, signal);
      place.querySelectorAll(':scope > :not(ul)').forEach((one) => one.remove());
      if (facet === null) {
        place.append(hint('Its index has other fields before it: filter by them first.'));
        return;
      }
      list.append(...facet.values.filter(isPlain).map((value) => valueItem(options, path, value)));
      place.append(...afterValues(options, path, facet, more));
    } catch (error) {
      if (isAbort(error)) return;
      place.append(hint(reasonOf(error)));
    }
  };
  await more(null);
}

function isPlain({ value }: FacetValue): boolean {
  return kindOf(value) !== 'nested';
}

function valueItem({ resource, view, go }: FilterOptions, path: string, one: FacetValue): HTMLElement {
  const isChosen = view.equals.get(path) === one.text;
  const text = one.value === null ? 'empty' : one.value === '' ? 'empty text' : shown(one.value);
  const choice = button(
    { class: 'value', id: `value-${path}-${one.text}`, 'aria-pressed': String(isChosen) },
    () => go(isChosen ? withoutFilter(resource, view, path) : withFilter(resource, view, path, one.text)),
    make('span', { class: 'value-text', title: text }, text),
    make('span', { class: 'value-count' }, one.count === null ? '' : counted(one.count)),
  );
  return make('li', {}, choice);
}

/** What follows the values: more of them, and a place to type one. */
function afterValues(
  { resource, view, go }: FilterOptions,
  path: string,
  facet: Facet,
  more: (cursor: string) => Promise<void>,
): readonly HTMLElement[] {
  const { next } = facet;
  if (next === null && facet.values.length > 0) return [];
  const input = make('input', {
    name: path,
    autocomplete: 'off',
    'aria-label': `Another value of ${path}`,
    placeholder: 'another value',
  });
  const form = make('form', { class: 'inline' }, input, make('button', { class: 'small' }, 'Filter'));
  on(form, 'submit', () => {
    if (input.value !== '') go(withFilter(resource, view, path, input.value));
  });
  if (next === null) return [form];
  return [button({ class: 'link' }, () => more(next), 'More values'), form];
}

function rangeForm({ view, go }: FilterOptions, path: string): HTMLElement {
  const isSort = view.sort === path;
  const bound = (name: string, value: string) => {
    const input = make('input', { name, autocomplete: 'off', id: `range-${path}-${name}` });
    input.value = isSort ? value : '';
    return { input, label: make('label', {}, make('span', {}, name), input) };
  };
  const [from, to] = [bound('from', view.low), bound('to', view.high)];
  const form = make(
    'form',
    { class: 'range', 'aria-label': `Range of ${path}` },
    from.label,
    to.label,
    make('button', { class: 'small' }, 'Apply'),
  );
  on(form, 'submit', () => go(withRange(view, path, from.input.value.trim(), to.input.value.trim())));
  return form;
}

/** The filters that apply, above the table. Each can be taken away. */
function showChips({ resource, view, go }: FilterOptions): void {
  const chip = (words: string, without: View) =>
    button({ class: 'chip', 'aria-label': `Remove the filter: ${words}` }, () => go(without), words);
  const chips = [...view.equals].map(([path, text]) =>
    chip(`${path} is ${shownText(text)}`, withoutFilter(resource, view, path)),
  );
  const range = wordsOf({ ...view, equals: new Map() });
  if (range !== '') chips.push(chip(range, { ...view, low: '', high: '' }));
  element('chips').replaceChildren(...chips);
}
