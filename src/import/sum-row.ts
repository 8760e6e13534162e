import { BSON, type Document } from '../store/values/bson.ts';
import type { FilledRow } from '../store/store.ts';
import { quoted } from '../terminal/text.ts';

/** The rows at the ends of a source. */
export interface Ends {
  readonly first: FilledRow | undefined;
  readonly last: FilledRow | undefined;
  /** Present: the last row is bad. */
  readonly lastProblem?: { readonly at: number; readonly problem: string } | undefined;
}

/** What rows of sums begin with, in the languages of offices. */
const SUM =
  /^(?:Σ|(?:grand |sub)?totals?|sum|summen?|(?:gesamt|zwischen)(?:summe)?|insgesamt|somme|suma|totale|totaal|razem)(?:\s+\d{4})?[\s:.]*$/i;

/** What an import says of the last row of a table, when it looks like one of sums. */
export function sumRowNotes({ first, last, lastProblem }: Ends, unit: string): readonly string[] {
  if (lastProblem) {
    if (!lastProblem.problem.endsWith('the id is empty')) return [];
    return [`the last row (${unit} ${lastProblem.at}) has no key and is left out: it may be a row of sums`];
  }
  if (!first || !last || first === last) return [];
  const begun = beginning(first);
  const ended = beginning(last);
  const word = Object.values(ended).find((value) => typeof value === 'string');
  if (typeof word === 'string' && SUM.test(word.trim()))
    return [
      `the last row (${unit} ${last.at}) has ${quoted(word)} and may be a row of sums: it is stored as a row`,
    ];
  const [missing] = Object.keys(begun);
  if (missing === undefined || missing in ended || Object.keys(ended).length === 0) return [];
  return [
    `the last row (${unit} ${last.at}) has no ${quoted(missing)} and may be a row of sums: it is stored as a row`,
  ];
}

/** The fields of a row without its key when that was made for it, in their order. */
function beginning({ item }: FilledRow): Document {
  const { _id, ...fields } = BSON.deserialize(item);
  const isMade = (_id as { _bsontype?: string } | null)?._bsontype === 'ObjectId';
  return isMade ? fields : { _id: _id as unknown, ...fields };
}
