/** Finds the row with a key, or the first one from a value on, and the rows behind it. */
import { ask, Refused } from './api.ts';
import { BLOCK } from './row-cache.ts';
import { rowUrl } from './resource.ts';
import { keyOf, textOf, valueAt, type Json, type Row } from './json.ts';
import type { Page, Reader } from './reader.ts';
import { shownText, urlOf, viewQuery } from './view.ts';

/** The rows of a view from a key on, or from a value of its order. Null: none is there, or behind it. */
export async function rowsFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Page | null> {
  const row = await firstFrom(reader, wanted, signal);
  if (!row) return null;
  const page = await reader.readAfter(afterText(reader, row), BLOCK - 1, signal);
  return { ...page, rows: [row, ...page.rows] };
}

/** The first row of the view whose key, or whose value of the order, is `wanted` or beyond it. */
async function firstFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Row | undefined> {
  const { view } = reader;
  if (view.sort === 'id' && view.resource.aliases) return rowFrom(reader, wanted, signal);
  const from = view.direction === 1 ? { ...view, low: wanted } : { ...view, high: wanted };
  const url = urlOf(view.resource.links.page, viewQuery(from, { limit: 1 }));
  return (await ask<{ data: readonly Row[] }>(url, { signal })).body.data[0];
}

/** Without a parameter for a range of ids: reads the row itself, or the row after its place. */
async function rowFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Row | undefined> {
  const { resource, equals } = reader.view;
  try {
    const { body } = await ask<Row>(rowUrl(resource, wanted), { signal });
    if ([...equals].every(([path, text]) => isText(valueAt(body, path), text))) return body;
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
  }
  return (await reader.readAfter(wanted, 1, signal)).rows[0];
}

/** A row as `after` names it: by its value of the order and its key. */
function afterText({ view: { resource, sort } }: Reader, row: Row): string {
  if (sort === 'id') return keyOf(row);
  const names = [textAt(row, sort), keyOf(row)];
  return resource.aliases ? names.join(',') : JSON.stringify(names);
}

/** A field that a row lacks is no text, not even `null`. */
function isText(value: Json | undefined, text: string): boolean {
  return value !== undefined && textOf(value) === shownText(text);
}

function textAt(row: Row, path: string): string {
  return textOf(valueAt(row, path) ?? null);
}
