import type { Notes } from '../engine/edge.ts';

/** The labels of a request's route. There are as many as paths of routes. A path belongs to at most one resource. */
export type Place = Readonly<Record<'route', string>> & Readonly<Partial<Record<'resource', string>>>;

export function placeOf({ route, resource }: Pick<Notes, 'route' | 'resource'>): Place {
  if (route === null) return NONE;
  return resource === null ? { route } : { route, resource };
}

const NONE: Place = { route: 'none' };

const METHODS: ReadonlySet<string> = new Set('GET HEAD POST PUT PATCH DELETE OPTIONS'.split(' '));

/** The label of a method. A client may send any, so all that no route has are one. */
export function methodOf(method: string): string {
  return METHODS.has(method) ? method : 'other';
}
