/** Finds the row with a key, or the first one from a value on, and its number in the order of the view. */
import { ask, Refusal } from './api.ts';
import { BLOCK } from './row-cache.ts';
import { rowUrl } from './resource.ts';
import { isNumber, keyOf, textOf, valueAt, type Json, type Row } from './json.ts';
import type { Page, Reader } from './reader.ts';
import { shownText, urlOf, viewQuery } from './view.ts';

/** The number of a row, or, when that cannot be found, the rows from it on. */
type JumpPlace = number | Page;

/** Null: no row of the view is there, or behind it. `total`: about how many rows the view has. */
export async function findPlace(
  reader: Reader,
  wanted: string,
  total: number,
  signal: AbortSignal,
): Promise<JumpPlace | null> {
  const row = await firstFrom(reader, wanted, signal);
  if (!row) return null;
  const index = await numberOf(reader, row, total, signal);
  if (index !== null) return index;
  const page = await reader.readAfter(afterText(reader, row), BLOCK - 1, signal);
  return { ...page, rows: [row, ...page.rows] };
}

/** The first row of the view whose key, or whose value of the order, is `wanted` or beyond it. */
async function firstFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Row | undefined> {
  const { view } = reader;
  if (view.sort === 'id' && view.resource.onlyAliases) return rowFrom(reader, wanted, signal);
  const from = view.direction === 1 ? { ...view, low: wanted } : { ...view, high: wanted };
  const url = urlOf(view.resource.links.page ?? '', viewQuery(from, { limit: 1 }));
  return (await ask<{ data: readonly Row[] }>(url, { signal })).body.data[0];
}

/** Without a parameter for a range of ids: reads the row itself, or the row after its place. */
async function rowFrom(reader: Reader, wanted: string, signal: AbortSignal): Promise<Row | undefined> {
  const { resource, equals } = reader.view;
  try {
    const { body } = await ask<Row>(rowUrl(resource, wanted), { signal });
    if ([...equals].every(([path, text]) => isText(valueAt(body, path), text))) return body;
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
  }
  return (await reader.readAfter(wanted, 1, signal)).rows[0];
}

/** A row as `after` names it: by its value of the order and its key. */
function afterText({ view: { resource, sort } }: Reader, row: Row): string {
  if (sort === 'id') return keyOf(row);
  const names = [textAt(row, sort), keyOf(row)];
  return resource.onlyAliases ? names.join(',') : JSON.stringify(names);
}

/** A field that a row lacks is no text, not even `null`. */
function isText(value: Json | undefined, text: string): boolean {
  return value !== undefined && textOf(value) === shownText(text);
}

function textAt(row: Row, path: string): string {
  return textOf(valueAt(row, path) ?? null);
}

/** Finds the number of a row by halving the set. Null: values have no order here, or rows change or lie too deep. */
async function numberOf(
  reader: Reader,
  row: Row,
  total: number,
  signal: AbortSignal,
): Promise<number | null> {
  const { sort, direction } = reader.view;
  const isHere = (other: Row | undefined) => other !== undefined && keyOf(other) === keyOf(row);
  let low = 0;
  let high = total;
  try {
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const other = await reader.peek(middle, signal);
      const order = other === undefined ? 1 : compared(other, row, sort);
      if (order === null) return null;
      if (isHere(other)) return middle;
      if (other !== undefined && order * direction < 0) low = middle + 1;
      else high = middle;
    }
    return isHere(await reader.peek(low, signal)) ? low : null;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return null; // offset-too-deep, or a field that cannot be read alone
  }
}

/** The order of two rows by a path and then by key. Null: this page does not know it. */
function compared(one: Row, other: Row, sort: string): number | null {
  const order = sort === 'id' ? 0 : comparedValues(valueAt(one, sort), valueAt(other, sort));
  return order === 0 ? comparedValues(one._id ?? one.id, other._id ?? other.id) : order;
}

function comparedValues(one: Json | undefined, other: Json | undefined): number | null {
  const first = numberIn(one);
  const second = numberIn(other);
  if (first !== null && second !== null) return Math.sign(first - second);
  if (typeof one !== 'string' || typeof other !== 'string') return null;
  return comparedTexts(Array.from(one), Array.from(other));
}

function numberIn(value: Json | undefined): number | null {
  return isNumber(value) ? Number(textOf(value)) : null;
}

/** The order of texts by their UTF-8 bytes, which is that of their code points. */
function comparedTexts(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((character, n) => character !== other[n]);
  if (at === -1 || at >= other.length) return Math.sign(one.length - other.length);
  return Math.sign((one[at]?.codePointAt(0) ?? 0) - (other[at]?.codePointAt(0) ?? 0));
}
