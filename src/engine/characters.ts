const SECOND_HALF = /[\udc00-\udfff]/g;

/** How many characters (Unicode code points) a text has, which is what JSON Schema counts. */
export function characters(text: string): number {
  return text.length - (text.match(SECOND_HALF)?.length ?? 0);
}
