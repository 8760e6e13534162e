/**
 * Values of answers that differ from run to run, and what documents show for them. A pattern has the whole form of a value:
 * one of another form stays as it came, and differs from the document.
 */
type Varying = readonly [pattern: RegExp, shown: string];

const UUID4 = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';

export const REQUEST_ID: Varying = [
  new RegExp(`"requestId":"${UUID4}"`, 'g'),
  '"requestId":"6b1f0b9e-2f5c-4d0e-9b57-0d1f6c1c9a11"',
];

/**
 * A cursor that has the identity of its collection, or a place of a log. What it begins with says its kind and release, so
 * that stays.
 */
export const CURSOR: Varying = [/"(nextCursor|cursor|changes)":"([\w-]{2})[\w-]{20,}"/g, '"$1":"$2..."'];

/** A part of a list of partitions, in a URL. */
export const PART: Varying = [/\bpart=([\w-]{2})[\w-]{20,}/g, 'part=$1...'];

/** A text as a document shows it. */
export function asShown(text: string, varying: readonly Varying[]): string {
  return varying.reduce((shown, [pattern, fixed]) => shown.replace(pattern, fixed), text);
}
