import assert from 'node:assert/strict';
import { BSON } from '../../../src/store/bson.ts';
import { exactValues } from '../../../src/store/exact-values.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { compareBson } from './bson-order.ts';
import { nameOf } from './following.ts';

export type ModelRow = Readonly<Record<string, unknown>> & { readonly _id: unknown };

/** Whether two ids are of one row for a store: 7 and 7.0 are. */
export function isEqual(a: unknown, b: unknown): boolean {
  return compareBson(a, b) === 0;
}

/** Whether two ids are of one row for a client: 7 and 7.0 are not. */
export function isSame(a: unknown, b: unknown): boolean {
  return Buffer.compare(makeBookmark({ _id: a }), makeBookmark({ _id: b })) === 0;
}

/** A row without these fields. */
export function without(row: ModelRow, names: readonly string[]): ModelRow {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name))) as ModelRow;
}

/** The rows of a copy without these fields. */
export function copyWithout(
  copy: ReadonlyMap<string, Buffer>,
  names: readonly string[],
): ReadonlyMap<string, Buffer> {
  if (names.length === 0) return copy;
  const shown = (row: Buffer) => Buffer.from(BSON.serialize(without(exactValues(row) as ModelRow, names)));
  return new Map([...copy].map(([name, row]) => [name, shown(row)]));
}

/** Fails unless a copy has exactly these rows. */
export function assertSame(copy: ReadonlyMap<string, Buffer>, expected: readonly ModelRow[]): void {
  const wanted = new Map(expected.map((row) => [nameOf(BSON.serialize(row)), BSON.serialize(row)]));
  const shown = (row: Uint8Array | undefined) =>
    row ? BSON.EJSON.stringify(BSON.deserialize(row)) : 'nothing';
  for (const [name, row] of wanted)
    if (!copy.get(name)?.equals(row)) assert.fail(`${shown(row)} is ${shown(copy.get(name))} in the copy`);
  for (const [name, row] of copy) if (!wanted.has(name)) assert.fail(`${shown(row)} stayed in the copy`);
}
