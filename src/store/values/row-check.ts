import type { BsonElement } from './bson-elements.ts';
import { elementsIn } from './fields.ts';

/** What each row of a collection must have. It names its fields, so that one walk over a row finds them for all who look. */
export interface RowCheck {
  /** The top-level fields that it looks at, in UTF-8. */
  readonly names: readonly Uint8Array[];
  /**
   * Why a row (a BSON document) is refused: what was expected and what was found. Null: it is not. `elements`: those of the
   * names, in their order.
   */
  readonly refusalOf: (row: Uint8Array, elements: readonly (BsonElement | undefined)[]) => string | null;
}

/** Why a row is refused, also when its bytes are no BSON document. Null: it is not. */
export function refusalOfRow(row: Uint8Array, { names, refusalOf }: RowCheck): string | null {
  const elements = elementsIn(row, names);
  return typeof elements === 'string' ? elements : refusalOf(row, elements);
}
