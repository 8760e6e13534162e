/** The first screen: every resource with its rows and what can be asked of it. */
import { filterPaths } from './allowed-queries.ts';
import { isCounted, type Resource } from './resource.ts';
import { element, make } from './dom.ts';
import { counted } from './text.ts';
import { addressOf, wholeOf } from './view.ts';

/** Fills the list beside the content, and marks the resource that is shown. */
export function showList(resources: readonly Resource[], name: string): void {
  const entries = resources.map((resource) => {
    const current = resource.name === name ? 'page' : undefined;
    return make(
      'li',
      make(
        resource.links.page === undefined ? 'span' : 'a',
        { ...hrefOf(resource), 'aria-current': current },
        make('span.name', resource.name),
        make('span.rows', countOf(resource)),
      ),
    );
  });
  element('resource-list').replaceChildren(...entries);
}

export function showHome(resources: readonly Resource[]): void {
  element('home-rows').replaceChildren(...resources.map(entry));
}

function entry(resource: Resource): HTMLElement {
  const { name, unavailable, queries, kinds, links, missing, refused } = resource;
  const notes = [
    ...(unavailable === undefined ? [] : [unavailable]),
    ...missing.map(
      ({ index, line }) => `The index ${index} orders no rows without the key. This line adds it: ${line}`,
    ),
    ...refused.map(({ index, reason }) => `The index ${index} is not used: ${reason}.`),
  ];
  const changes = links.changes === undefined ? 'no' : 'yes';
  return make(
    'tr',
    make('th', { scope: 'row' }, links.page === undefined ? name : make('a', hrefOf(resource), name)),
    make('td.number', countOf(resource)),
    make('td', names(filterPaths(resource), kinds)),
    make('td', names([...new Set(queries.map(({ sort }) => sort ?? 'id'))], kinds)),
    make('td', isCounted(resource) ? changes : '\u2013'),
    make(
      'td.notes',
      notes.length > 0 &&
        make(
          'details',
          make('summary', notes.length === 1 ? '1 note' : `${notes.length} notes`),
          ...notes.map((note) => make('p', note)),
        ),
    ),
  );
}

/** Where its rows are shown. Empty: the key may not read them. */
function hrefOf(resource: Resource): { readonly href?: string } {
  return resource.links.page === undefined ? {} : { href: addressOf('data', wholeOf(resource)) };
}

function countOf({ rows, unavailable }: Resource): string {
  if (unavailable !== undefined) return 'not readable';
  return rows === undefined ? '\u2013' : counted(rows);
}

/** The paths, each with the kinds of its values as its title. */
function names(paths: readonly string[], kinds: Resource['kinds']): HTMLElement {
  const tags = paths.map((path) => {
    const title = kinds.find(({ field }) => field === path)?.kinds.join(' or ');
    return make('span.tag', { title }, path);
  });
  return make('span.tags', ...(tags.length > 0 ? tags : ['\u2013']));
}
