const SECOND_HALF = /[\udc00-\udfff]/g;

/** Counts the characters (Unicode code points) of a text, as JSON Schema does. */
export function characters(text: string): number {
  return text.length - (text.match(SECOND_HALF)?.length ?? 0);
}
