import type { Notes } from './edge.ts';

/** The notes of a request of which nothing is known yet. */
export function newNotes(): Notes {
  return { route: null, cost: 'page', client: '', rows: 0, failure: null };
}
