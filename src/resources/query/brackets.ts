import { BSON_TYPE } from '../../store/values/bson-types.ts';
import type { ValueRange } from '../../store/plan.ts';
import type { Reading, TextKind } from './kinds.ts';

/** The type that stands for the bracket of a kind, see ValueRange. */
export const BRACKETS: ReadonlyMap<TextKind, number> = new Map([
  ['number', BSON_TYPE.int32],
  ['objectid', BSON_TYPE.objectId],
  ['uuid', BSON_TYPE.binary],
  ['date', BSON_TYPE.date],
  ['boolean', BSON_TYPE.boolean],
  ['string', BSON_TYPE.string],
]);

/** The type that stands for the bracket of a reading. Undefined: that of null, which is in no range. */
export function bracketOf({ kind }: Pick<Reading, 'kind'>): number | undefined {
  return kind === 'null' ? undefined : BRACKETS.get(kind);
}

/** For each reading of a text without a prefix, all values of its kind. */
export function rangesOfKinds(readings: readonly Pick<Reading, 'kind'>[]): readonly ValueRange[] {
  return readings.map((reading) => ({ bracket: bracketOf(reading) ?? BSON_TYPE.null }));
}

const KIND_OF_TYPE: ReadonlyMap<number, TextKind> = new Map([
  ...[...BRACKETS].map(([kind, type]) => [type, kind] as const),
  [BSON_TYPE.double, 'number'],
  [BSON_TYPE.int64, 'number'],
  [BSON_TYPE.decimal128, 'number'],
  [BSON_TYPE.symbol, 'string'],
]);

/** The kind of values of a BSON type. Undefined: no text without a prefix stands for them. */
export function kindOfType(type: number): TextKind | undefined {
  return KIND_OF_TYPE.get(type);
}

/** The type that stands for the bracket of a type. */
export function bracketOfType(type: number): number {
  const kind = kindOfType(type);
  return (kind && BRACKETS.get(kind)) ?? type;
}
