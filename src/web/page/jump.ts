/** Finds the row with a key, or the first one from a value on, and its number in the order of the view. */
import { ask, Refused, urlOf } from './api.ts';
import { BLOCK } from './row-cache.ts';
import { rowUrl } from './resource.ts';
import { Digits, keyOf, textOf, valueAt, type Json, type Row } from './json.ts';
import type { Page, Reader } from './reader.ts';
import { isAbort } from './text.ts';
import { shownText, viewQuery, type View } from './view.ts';

/** Where a row is: its number, or, when that cannot be found, the rows from it on. */
export type Found =
  | { readonly kind: 'number'; readonly index: number; readonly row: Row }
  | { readonly kind: 'inside'; readonly page: Page };

/** Null: no row of the view is there, or behind it. `total`: about how many rows the view has. */
export async function findPlace(
  reader: Reader,
  wanted: string,
  total: number,
  signal: AbortSignal,
): Promise<Found | null> {
  const row = await firstFrom(reader, wanted, signal);
  if (!row) return null;
  const index = await numberOf(reader, row, total, signal);
  if (index !== null) return { kind: 'number', index, row };
  const page = await reader.readAfter(afterText(reader, row), BLOCK - 1, signal);
  return { kind: 'inside', page: { ...page, rows: [row, ...page.rows] } };
}

/** The first row of the view whose key, or whose value of the order, is `wanted` or beyond it. */
async function firstFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Row | undefined> {
  const { resource, view } = reader;
  if (view.sort === 'id' && resource.aliases) return rowFrom(reader, wanted, signal);
  const from: View = view.direction === 1 ? { ...view, low: wanted } : { ...view, high: wanted };
  const query = viewQuery(resource, from);
  query.set('limit', '1');
  const { body } = await ask<{ data: readonly Row[] }>(urlOf(resource.links.page, query), { signal });
  return body.data[0];
}

/** Without a parameter for a range of ids: reads the row itself, or the row after its place. */
async function rowFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Row | undefined> {
  const { resource, view } = reader;
  try {
    const { body } = await ask<Row>(rowUrl(resource, wanted), { signal });
    if ([...view.equals].every(([path, text]) => isText(valueAt(body, path), text))) return body;
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
  }
  return (await reader.readAfter(wanted, 1, signal)).rows[0];
}

function isText(value: Json | undefined, text: string): boolean {
  return value !== undefined && textOf(value) === shownText(text);
}

/** A row as `after` names it: by its value of the order and its key. */
function afterText({ resource, view }: Reader, row: Row): string {
  const key = keyOf(row);
  if (view.sort === 'id') return key;
  const value = textOf(valueAt(row, view.sort) ?? null);
  return resource.aliases ? `${value},${key}` : JSON.stringify([value, key]);
}

/**
 * The number of a row, by halving the set and looking at one row each time. Null when the values cannot be compared
 * here, when the server finds no rows that deep by their number, or when the rows change meanwhile.
 */
async function numberOf(
  reader: Reader,
  row: Row,
  total: number,
  signal: AbortSignal,
): Promise<number | null> {
  const { sort, direction } = reader.view;
  const key = keyOf(row);
  let [low, high] = [0, total];
  try {
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const other = await reader.peek(middle, signal);
      const order = other === undefined ? 1 : compared(other, row, sort);
      if (order === null) return null;
      if (other !== undefined && keyOf(other) === key) return middle;
      if (other !== undefined && order * direction < 0) low = middle + 1;
      else high = middle;
    }
    const there = await reader.peek(low, signal);
    return there !== undefined && keyOf(there) === key ? low : null;
  } catch (error) {
    if (isAbort(error) || !(error instanceof Refused)) throw error;
    return null; // offset-too-deep, or a field that cannot be read alone
  }
}

/** The order of two rows by a path and then by key. Null: this page does not know it. */
function compared(one: Row, other: Row, sort: string): number | null {
  const byKey = () => comparedValues(one._id ?? one.id, other._id ?? other.id);
  if (sort === 'id') return byKey();
  const order = comparedValues(valueAt(one, sort), valueAt(other, sort));
  return order === 0 ? byKey() : order;
}

function comparedValues(one: Json | undefined, other: Json | undefined): number | null {
  const [first, second] = [numberIn(one), numberIn(other)];
  if (first !== null && second !== null) return Math.sign(first - second);
  if (typeof one !== 'string' || typeof other !== 'string') return null;
  return comparedTexts(one, other);
}

function numberIn(value: Json | undefined): number | null {
  if (value instanceof Digits) return Number(value.text);
  return typeof value === 'number' ? value : null;
}

/** Texts by their UTF-8 bytes, which is the order of their code points. */
function comparedTexts(one: string, other: string): number {
  const [first, second] = [Array.from(one), Array.from(other)];
  for (let n = 0; n < Math.min(first.length, second.length); n++) {
    const step = (first[n]?.codePointAt(0) ?? 0) - (second[n]?.codePointAt(0) ?? 0);
    if (step !== 0) return Math.sign(step);
  }
  return Math.sign(first.length - second.length);
}
