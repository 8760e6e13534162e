/** The rows of one resource: table, filters, order, row detail, jumps and counts. */
import { ask, mayPass, Refused, urlOf } from './api.ts';
import { filterPaths, filtersToOrderBy, missingWith } from './allowed-queries.ts';
import { createBlocks, type Blocks } from './row-cache.ts';
import { isCounted, type Resource } from './resource.ts';
import { sortsOf, withFilter, withSort } from './choose.ts';
import { hideDetail, showDetail } from './detail.ts';
import { button, element, make, on, run, say, tryAgain, warn } from './dom.ts';
import { spelled } from './facets.ts';
import { showFilters } from './filters.ts';
import { findPlace } from './jump.ts';
import type { Row } from './json.ts';
import { markAppeared, showLive } from './live-highlights.ts';
import { createReader, type Page, type Reader } from './reader.ts';
import { createTable, type Table } from './table.ts';
import { toggleTake } from './get-all.ts';
import { listed, reasonOf, rowsOf } from './text.ts';
import { filterQuery, sortText, viewQuery, wordsOf, type View } from './view.ts';

/** What is shown now. */
interface Current {
  readonly go: (view: View) => void;
  readonly reader: Reader;
  readonly signal: AbortSignal;
  readonly blocks: Blocks;
  readonly table: Table;
}

let current: Current | null = null;
let leave = new AbortController();

/**
 * Shows a view, and ends the work of the one before. `go`: shows another view of the resource. `reload`: lists the
 * resources again, and shows the view anew.
 */
export function showData(
  resource: Resource,
  view: View,
  go: (view: View) => void,
  reload: () => unknown,
): void {
  leaveData();
  leave = new AbortController();
  const { signal } = leave;
  say('data-title', resource.name);
  say('request', '');
  warn('');
  showEmpty('');
  showFilters({ resource, view, go, signal });
  showJump(view, isCounted(resource));
  const why = unreadable(resource, view);
  element('grid').hidden = why !== '';
  say('data-count', '');
  if (why !== '') {
    showEmpty(why);
    if (resource.unavailable !== undefined) element('empty').append(tryAgain(reload));
    element('live', HTMLButtonElement).hidden = true;
    return;
  }
  const reader = createReader(resource, view, (url, ms) =>
    say('request', `GET ${url} \u2192 200 in ${ms.toFixed(1)} ms`),
  );
  const isWhole = viewQuery(resource, { ...view, sort: 'id', direction: 1 }).size === 0;
  const now = showTable(reader, signal, go, isWhole ? resource.rows : undefined);
  if (isCounted(resource)) run(() => count(now));
}

/** Reads the rows in sight again. False: none are shown. */
export function readAgain(): boolean {
  current?.blocks.refresh();
  return current !== null;
}

/** Ends the work of the shown view, for another part of the page. */
export function leaveData(): void {
  leave.abort();
  current?.blocks.close();
  current?.table.close();
  current = null;
  hideDetail();
}

/** Why nothing can be read. Empty: it can. */
function unreadable({ unavailable, queries }: Resource, { equals }: View): string {
  if (unavailable !== undefined) return unavailable;
  const missing = missingWith(queries, [...equals.keys()]) ?? [];
  if (missing.length === 0) return '';
  return `Choose a value of ${listed(missing)}, too: the index answers ${listed([...equals.keys(), ...missing])} only together.`;
}

/** Shows the rows of a reader. `expected`: about how many there are. `first`: the first of them, inside the set. */
function showTable(
  reader: Reader,
  signal: AbortSignal,
  go: (view: View) => void,
  expected: number | undefined,
  first?: Page,
): Current {
  const { resource, view } = reader;
  let hasFailed = false;
  const blocks = createBlocks({
    reader,
    expected,
    ...(first && { first }),
    changed: () => {
      if (current?.blocks !== blocks) return;
      if (hasFailed) warn('');
      hasFailed = false;
      current.table.show();
      showCount(current);
      markAppeared();
    },
    failed: (error) => {
      const again = mayPass(error) ? () => blocks.refresh() : undefined;
      warn(reasonOf(error), again);
      hasFailed = true;
      if ([...blocks.rows()].length === 0) showEmpty('The rows could not be read.');
    },
  });
  const table = createTable({
    place: element('grid'),
    resource,
    order: {
      sort: view.sort,
      direction: view.direction,
      sorts: sortsOf(resource, view),
      asked: async (path) => {
        if (sortsOf(resource, view).includes(path)) go(withSort(view, path));
        else await explain(resource, view, path, go);
      },
    },
    blocks,
    opened: (index, row) => openRow(resource, view, row, index, go),
    activated: (index) => {
      const row = blocks.row(index);
      if (row && !element('detail').hidden) openRow(resource, view, row, index, go);
    },
    left: hideDetail,
  });
  current = { go, reader, signal, blocks, table };
  table.show();
  showLive(current);
  return current;
}

function openRow(resource: Resource, view: View, row: Row, index: number, go: (view: View) => void): void {
  toggleTake(false);
  const closed = () => {
    hideDetail();
    element('grid').focus();
  };
  element('detail').onkeydown = ({ key }) => {
    if (key === 'Escape') closed();
  };
  showDetail(row, {
    resource,
    closed,
    moved: (by) => {
      const next = current?.blocks.row(index + by);
      if (!next) return;
      current?.table.activate(index + by);
      openRow(resource, view, next, index + by, go);
    },
    filters: filterPaths(resource.queries),
    filtered: (path, value) => go(withFilter(resource, view, path, spelled(value))),
  });
}

/** Says why no index orders the rows by a path, as the server does, which also names the index that would. */
async function explain(
  resource: Resource,
  view: View,
  path: string,
  go: (view: View) => void,
): Promise<void> {
  const first = listed(filtersToOrderBy(resource.queries, [...view.equals.keys()], path));
  if (first !== '') {
    warn(`Filter by ${first} first: an index orders the rows of one ${first} by ${path}.`);
    return;
  }
  const sorts = listed(sortsOf(resource, view), 'or');
  if (resource.aliases || !isCounted(resource)) {
    warn(
      `No index orders ${resource.name} by ${path}: ${sorts} ${sorts.includes(' or ') ? 'do' : 'does'}. Import the rows as a resource of your own to index other fields.`,
    );
    return;
  }
  const query = filterQuery(resource, view);
  query.set('sort', sortText({ sort: path, direction: 1 }));
  query.set('limit', '1');
  try {
    await ask(urlOf(resource.links.page, query));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    warn(`The rows cannot be ordered by ${path} here. ${error.message}`);
    return;
  }
  go(withSort(view, path)); // an index was made meanwhile
}

async function count(now: Current): Promise<void> {
  const total = await now.reader.count(now.signal);
  if (total && !now.blocks.beginsInside) now.blocks.counted(total);
}

function showCount({ reader, blocks }: Current): void {
  const { rows, is } = blocks.total();
  const about = { exact: '', estimated: 'about ', atLeast: 'at least ' }[is];
  const words = wordsOf(reader.view);
  say(
    'data-count',
    blocks.beginsInside ? 'rows from the place that you jumped to' : `${about}${rowsOf(rows)}`,
  );
  element('grid').hidden = rows === 0;
  if (rows > 0) showEmpty('');
  else if (words === '') showEmpty(`${reader.resource.name} has no rows yet.`);
  else showEmpty(`No row matches: ${words}.`);
}

/** Words in place of rows. Empty: there are rows. */
function showEmpty(words: string): void {
  element('empty').hidden = words === '';
  element('empty').replaceChildren(make('p', {}, words));
}

function showJump(view: View, canJump: boolean): void {
  element('jump').hidden = !canJump;
  element('jump-to', HTMLInputElement).value = '';
  element('jump-to', HTMLInputElement).placeholder = view.sort === 'id' ? 'id' : view.sort;
}

/** Sets up what stays: the form that jumps to a key or to a row number. */
export function setUpData(): void {
  on(element('jump'), 'submit', async () => {
    const wanted = element('jump-to', HTMLInputElement).value.trim();
    if (!current || wanted === '') return;
    await jump(current, wanted);
  });
}

async function jump(now: Current, wanted: string): Promise<void> {
  warn('');
  const [, number] = /^#([\d.,\s]+)$/.exec(wanted) ?? [];
  if (number !== undefined) {
    now.table.goTo(Number(number.replace(/\D/g, '')) - 1);
    return;
  }
  const place = await findPlace(now.reader, wanted, now.blocks.total().rows, now.signal);
  if (place === null) warn(`There is no row at ${wanted}, or behind it.`);
  else if (place.kind === 'number') now.table.goTo(place.index);
  else {
    now.blocks.close();
    now.table.close();
    const { go, reader, signal } = now;
    showCount(showTable(reader, signal, go, undefined, place.page));
    const label = `Show the rows from the beginning, not from ${wanted} on`;
    const back = () => go(reader.view);
    element('chips').append(button({ class: 'chip', 'aria-label': label }, back, `from ${wanted} on`));
  }
}
