import { onDemand } from '../store/values/bson.ts';
import { BSON_TYPE } from '../store/values/bson-types.ts';
import type { View } from '../rows/view.ts';

/** Where an element of a document has its name and its value, in bytes. */
export type Element = readonly [type: number, nameAt: number, nameLength: number, at: number, length: number];

/** The elements of the document at `at`, in stored order. */
export function elementsAt(row: Buffer, at: number): readonly Element[] {
  return [...onDemand.parseToElements(row, at)];
}

export function nameOf(row: Buffer, [, at, length]: Element): string {
  return row.toString('utf8', at, at + length);
}

/** Whether something of a value is shown. A view of members shows nothing of a value without members. */
export function isShown(view: View | null, [type]: Element): view is View {
  return view !== null && (!view.isPartial || type === BSON_TYPE.document || type === BSON_TYPE.array);
}
