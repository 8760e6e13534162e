const PARQUET = [0x50, 0x41, 0x52, 0x31];

/** Whether a file begins and ends as Parquet. */
export function isParquet(bytes: Uint8Array): boolean {
  return PARQUET.every((byte, n) => bytes[n] === byte && bytes.at(n - 4) === byte);
}

/** Pieces as one. `length`: that of all. */
export function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [first] = pieces;
  if (first && pieces.length === 1) return first;
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** The beginning of a content, as text. */
export async function textOf(content: AsyncIterable<Uint8Array>, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of content) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > most) break;
  }
  return text;
}
