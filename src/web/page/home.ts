/** The first screen: every resource with its rows and what can be asked of it. */
import { filterPaths } from './allowed-queries.ts';
import { isCounted, type Resource } from './resource.ts';
import { element, make } from './dom.ts';
import { placeOf } from './route.ts';
import { counted } from './text.ts';
import { WHOLE } from './view.ts';

/** Fills the list beside the content, and marks the resource that is shown. */
export function showList(resources: readonly Resource[], name: string): void {
  element('resource-list').replaceChildren(
    ...resources.map((resource) =>
      make(
        'li',
        {},
        make(
          'a',
          {
            href: placeOf('data', resource, WHOLE),
            'aria-current': resource.name === name ? 'page' : undefined,
          },
          make('span', { class: 'name' }, resource.name),
          make('span', { class: 'rows' }, countOf(resource)),
        ),
      ),
    ),
  );
}

export function showHome(resources: readonly Resource[]): void {
  element('home-rows').replaceChildren(...resources.map(entry));
}

function entry(resource: Resource): HTMLElement {
  const { name, unavailable, queries, kinds, links, missing, refused } = resource;
  const sorts = [...new Set(queries.map(({ sort }) => sort ?? 'id'))];
  const notes = [
    ...(unavailable === undefined ? [] : [unavailable]),
    ...missing.map(
      ({ index, line }) => `The index ${index} orders no rows without the key. This line adds it: ${line}`,
    ),
    ...refused.map(({ index, reason }) => `The index ${index} is not used: ${reason}.`),
  ];
  return make(
    'tr',
    {},
    make('th', { scope: 'row' }, make('a', { href: placeOf('data', resource, WHOLE) }, name)),
    make('td', { class: 'number' }, countOf(resource)),
    make('td', {}, names(filterPaths(queries), kinds)),
    make('td', {}, names(sorts, kinds)),
    make('td', {}, isCounted(resource) ? (links.changes === undefined ? 'no' : 'yes') : '\u2013'),
    make(
      'td',
      { class: 'notes' },
      notes.length > 0 &&
        make(
          'details',
          {},
          make('summary', {}, `${notes.length} notes`),
          ...notes.map((note) => make('p', {}, note)),
        ),
    ),
  );
}

function countOf({ rows, unavailable }: Resource): string {
  if (unavailable !== undefined) return 'not readable';
  return rows === undefined ? '\u2013' : counted(rows);
}

/** The paths, each with the kinds of its values as its title. */
function names(paths: readonly string[], kinds: Resource['kinds']): HTMLElement {
  const shown = paths.map((path) => {
    const title = kinds.find(({ field }) => field === path)?.kinds.join(' or ');
    return make('span', { class: 'tag', title }, path);
  });
  return make('span', { class: 'tags' }, ...(shown.length > 0 ? shown : ['\u2013']));
}
