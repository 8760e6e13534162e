/** The rows of one resource: table, filters, order, row detail, jumps and counts. */
import { missingFilters, sortsOf, withFilter, withSort } from './allowed-queries.ts';
import { ask, mayPass, Refusal } from './api.ts';
import { hideDetail, showDetail } from './detail.ts';
import { element, make, on, onEscape, run, say, tryAgain, warn } from './dom.ts';
import { leaveEdition } from './edition.ts';
import { showFilters, type FilterContext } from './filters.ts';
import { toggleTake } from './get-all.ts';
import { findPlace } from './jump.ts';
import { leaveLive, showLive } from './live-highlights.ts';
import { Reader, type Page } from './reader.ts';
import { isCounted } from './resource.ts';
import { Blocks } from './row-cache.ts';
import { Table } from './table.ts';
import { listed, reasonOf, rowsOf } from './text.ts';
import { filterQuery, spelled, urlOf, viewQuery, wordsOf, type View } from './view.ts';

interface CurrentView extends FilterContext {
  readonly reader: Reader;
  readonly blocks: Blocks;
  readonly table: Table;
}

let current: CurrentView | null = null;
let leave = new AbortController();

/** Shows a view, and ends the work of the one before. `reload`: lists the resources again, and shows the view anew. */
export function showData(view: View, go: (view: View) => void, reload: () => unknown): void {
  leaveData();
  leave = new AbortController();
  const { signal } = leave;
  const { resource } = view;
  const jumpTo = element('jump-to', HTMLInputElement);
  for (const id of ['request', 'data-count']) say(id, '');
  say('data-title', resource.name);
  element('jump').hidden = !isCounted(resource);
  jumpTo.value = '';
  jumpTo.placeholder = view.sort;
  showFilters({ view, go, signal });
  const why = unreadable(view);
  element('grid').hidden = why !== '';
  showEmpty(why);
  if (why !== '') {
    if (resource.unavailable !== undefined) element('empty').append(tryAgain(reload));
    element('live').hidden = true;
    return;
  }
  const reader = new Reader(view, (url, ms) =>
    say('request', `GET ${url} \u2192 200 in ${ms.toFixed(1)} ms`),
  );
  const isWhole = viewQuery({ ...view, sort: 'id', direction: 1 }).size === 0;
  const { blocks } = showTable({ view, go, signal }, reader, isWhole ? resource.rows : undefined);
  // The rows say what is wrong. Without a count the estimate stays.
  if (isCounted(resource))
    run(
      () => blocks.count(signal),
      () => undefined,
    );
}

/** Reads the rows in sight again. False: none are shown. */
export function readAgain(): boolean {
  current?.blocks.refresh();
  return current !== null;
}

/** Ends the work of the shown view, for another part of the page. */
export function leaveData(): void {
  leave.abort();
  leaveEdition();
  closeTable();
  hideDetail();
}

function closeTable(): void {
  current?.blocks.close();
  current?.table.close();
  current = null;
}

/** Why nothing can be read. Empty: it can. */
function unreadable(view: View): string {
  const { unavailable, links } = view.resource;
  if (links.page === undefined) return 'The key may not read these rows.';
  const missing = missingFilters(view);
  if (unavailable !== undefined || missing.length === 0) return unavailable ?? '';
  const together = listed([...view.equals.keys(), ...missing]);
  return `Choose a value of ${listed(missing)}, too: the index answers ${together} only together.`;
}

/** Shows the rows of a reader. `expected`: about how many there are. `first`: the first of them, inside the set. */
function showTable(
  shown: FilterContext,
  reader: Reader,
  expected: number | undefined,
  first?: Page,
): CurrentView {
  const { view, go } = shown;
  let hasFailed = false;
  const blocks = new Blocks({
    reader,
    expected,
    first,
    changed: () => {
      if (current?.blocks !== blocks) return;
      if (hasFailed) warn('');
      hasFailed = false;
      current.table.show();
      showCount(current);
    },
    failed: (error) => {
      warn(reasonOf(error), mayPass(error) ? () => blocks.refresh() : undefined);
      hasFailed = true;
      if (!mayPass(error)) leaveLive();
      if (blocks.rows().length > 0) return;
      element('grid').hidden = true;
      showEmpty('The rows could not be read.');
    },
  });
  const table = new Table({
    place: element('grid'),
    view,
    blocks,
    sorted: async (path) => {
      if (sortsOf(view).includes(path) || !(await isRefused(view, path))) go(withSort(view, path));
    },
    opened: openRow,
    activated: (index) => {
      if (!element('detail').hidden) openRow(index);
    },
    left: hideDetail,
  });
  current = { ...shown, reader, blocks, table };
  table.show();
  showLive(current);
  return current;
}

/** Opens a row, if it is there. */
function openRow(index: number): void {
  const row = current?.blocks.row(index);
  if (!row || !current) return;
  const { view, go, table } = current;
  toggleTake(false);
  showDetail(view.resource, row, {
    closed: closeRow,
    moved: (by) => {
      if (current?.blocks.row(index + by)) table.activate(index + by);
      openRow(index + by);
    },
    filtered: (path, value) => go(withFilter(view, path, spelled(value))),
  });
}

function closeRow(): void {
  hideDetail();
  element('grid').focus();
}

/** Whether no index orders the rows by a path. Says why, as the server does, which also names the index that would. */
async function isRefused(view: View, path: string): Promise<boolean> {
  const { name, onlyAliases, links } = view.resource;
  const first = listed(missingFilters(view, path));
  const sorts = listed(sortsOf(view), 'or');
  if (first !== '') warn(`Filter by ${first} first: an index orders the rows of one ${first} by ${path}.`);
  else if (onlyAliases || !isCounted(view.resource))
    warn(
      `No index orders ${name} by ${path}: ${sorts} ${sorts.includes(' or ') ? 'do' : 'does'}. Import the rows as a resource of your own to index other fields.`,
    );
  else
    try {
      await ask(urlOf(links.page ?? '', filterQuery(view, { sort: `${path}_asc`, limit: 1 })));
      return false; // an index was made meanwhile
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      warn(`The rows cannot be ordered by ${path} here. ${error.message}`);
    }
  return true;
}

function showCount({ view, blocks }: CurrentView): void {
  const { rows, is } = blocks.total;
  const about = { exact: '', estimated: 'about ', atLeast: 'at least ' }[is];
  const place = 'rows from the place that you jumped to';
  say('data-count', blocks.beginsInside ? place : `${about}${rowsOf(rows)}`);
  element('grid').hidden = rows === 0;
  const words = wordsOf(view);
  const none = words === '' ? `${view.resource.name} has no rows yet.` : `No row matches: ${words}.`;
  showEmpty(rows > 0 ? '' : none);
}

/** Words in place of rows. Empty: there are rows. */
function showEmpty(words: string): void {
  element('empty').hidden = words === '';
  element('empty').replaceChildren(make('p', words));
}

/** Sets up what stays: the form that jumps to a key or to a row number, and the key that closes a row. */
export function setUpData(): void {
  onEscape('detail', closeRow);
  on(element('jump'), 'submit', async () => {
    const wanted = element('jump-to', HTMLInputElement).value.trim();
    if (current && wanted !== '') await jump(current, wanted);
  });
}

async function jump(now: CurrentView, wanted: string): Promise<void> {
  warn('');
  const { view, go, reader, signal, blocks, table } = now;
  const [, number] = /^#([\d.,\s]+)$/.exec(wanted) ?? [];
  const place =
    number === undefined
      ? await findPlace(reader, wanted, blocks.total.rows, signal)
      : Number(number.replace(/\D/g, '')) - 1;
  if (place === null) warn(`There is no row at ${wanted}, or behind it.`);
  else if (typeof place === 'number') table.goTo(place);
  else {
    closeTable();
    showCount(showTable(now, reader, undefined, place));
    const label = `Show the rows from the beginning, not from ${wanted} on`;
    const back = () => go(view);
    element('chips').append(make('button.chip', { 'aria-label': label, onclick: back }, `from ${wanted} on`));
  }
}
