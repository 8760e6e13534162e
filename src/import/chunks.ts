import { LONGEST_ROW } from './row.ts';

/** A stream of bytes whose beginning was read ahead. */
export interface Peeked {
  /** The first bytes: at least as many as requested, or fewer when the source has no more. */
  readonly head: Buffer;
  /** All bytes, including the head. They can be read once. */
  readonly bytes: AsyncIterable<Buffer>;
}

/** Reads ahead until `isEnough` returns true for the bytes so far, or until the source ends. */
export async function peek(
  source: AsyncIterable<Buffer>,
  isEnough: (head: Buffer) => boolean,
): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (!isEnough(head)) {
    const next = await iterator.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  return { head, bytes: rejoin(head.length > 0 ? [head] : [], iterator) };
}

/** The beginning of a stream, up to some size. */
export interface Sample {
  readonly chunks: readonly Buffer[];
  /** Whether the stream goes on behind the sample. */
  readonly isCut: boolean;
  /** All bytes, including the sample. They can be read once. */
  readonly bytes: AsyncIterable<Buffer>;
}

/** Reads a stream up to a size. A source that fails there fails where its bytes are read. */
export async function readAhead(source: AsyncIterable<Buffer>, size: number): Promise<Sample> {
  const iterator = source[Symbol.asyncIterator]();
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    while (length < size) {
      const next = await iterator.next();
      if (next.done) return { chunks, isCut: false, bytes: rejoin(chunks, iterator) };
      chunks.push(next.value);
      length += next.value.length;
    }
  } catch (error) {
    return { chunks, isCut: true, bytes: rejoin(chunks, failing(error)) };
  }
  return { chunks, isCut: true, bytes: rejoin(chunks, iterator) };
}

/** A source whose first values were taken already, as a whole. */
export async function* rejoin<T>(taken: readonly T[], iterator: AsyncIterator<T>): AsyncGenerator<T> {
  try {
    yield* taken;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}

function failing(error: unknown): AsyncIterator<Buffer> {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the error that the source threw
  return { next: () => Promise.reject(error) };
}

/** Bytes that rows are found in. */
export interface Piece {
  readonly bytes: Buffer;
  /** Whether the source ends with them. */
  readonly isLast: boolean;
  /** Where the first row begins that does not end in them, which is in the next piece again. The reader of the rows sets it. */
  rest: number;
}

/** The chunks of a source as pieces. A long row is not scanned anew with each chunk: a piece is twice as long as its rest was. */
export async function* piecesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Piece> {
  let [parts, length, wanted]: [Buffer[], number, number] = [[], 0, 0];
  const join = (isLast: boolean): Piece => {
    const [only] = parts;
    return { bytes: only && parts.length === 1 ? only : Buffer.concat(parts), isLast, rest: 0 };
  };
  for await (const chunk of source) {
    parts.push(chunk);
    length += chunk.length;
    if (length < wanted) continue;
    const piece = join(false);
    yield piece;
    parts = [piece.bytes.subarray(piece.rest)];
    length = parts[0]?.length ?? 0;
    wanted = Math.min(2 * length, LONGEST_ROW + 1);
  }
  yield join(true);
}
