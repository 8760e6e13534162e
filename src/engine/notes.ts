import type { Notes } from './edge.ts';

/** Creates the notes of a request about which nothing is known yet. */
export function newNotes(): Notes {
  return { route: null, cost: 'page', client: '', rows: 0, failure: null };
}
