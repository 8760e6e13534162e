import { LONGEST_ROW } from './row.ts';

/** Reads ahead while `isWanted`. `isCut`: the source goes on behind that. `all`: all its values, to be read once. */
export async function takeWhile<T>(source: AsyncIterable<T>, isWanted: (taken: readonly T[]) => boolean) {
  const iterator = source[Symbol.asyncIterator]();
  const taken: T[] = [];
  let hasEnded = false;
  while (!hasEnded && isWanted(taken)) {
    const next = await iterator.next();
    if (next.done) hasEnded = true;
    else taken.push(next.value);
  }
  return { taken, isCut: !hasEnded, all: rejoin(taken, iterator) };
}

/** The first bytes of a source: at least as many as `isEnough` asks for, or fewer when it has no more; and all bytes. */
export async function peek(source: AsyncIterable<Buffer>, isEnough: (head: Buffer) => boolean) {
  let head: Buffer = Buffer.alloc(0);
  const { all } = await takeWhile(source, (chunks) => {
    head = Buffer.concat([head, ...chunks.slice(-1)]);
    return !isEnough(head);
  });
  return { head, bytes: all };
}

/** A source whose first values were taken already. It is no generator, which would cost each further value a promise. */
function rejoin<T>(taken: readonly T[], iterator: AsyncIterator<T>): AsyncIterableIterator<T> {
  const first = taken.values();
  const all: AsyncIterableIterator<T> = {
    [Symbol.asyncIterator]: () => all,
    next: () => {
      const next = first.next();
      return next.done ? iterator.next() : Promise.resolve(next);
    },
    return: async () => (await iterator.return?.()) ?? { value: undefined, done: true },
  };
  return all;
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
async function* piecesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Piece> {
  let parts: Buffer[] = [];
  let length = 0;
  let wanted = 0;
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

/** What `read` finds in each piece of a source. What it found before it threw comes first. */
export async function* foundInPieces<T>(
  source: AsyncIterable<Buffer>,
  read: (piece: Piece, found: T[]) => void,
): AsyncGenerator<readonly T[], void, undefined> {
  for await (const piece of piecesOf(source)) {
    const found: T[] = [];
    let fault: { readonly error: unknown } | null = null;
    try {
      read(piece, found);
    } catch (error) {
      fault = { error };
    }
    if (found.length > 0) yield found;
    if (fault) throw fault.error;
  }
}
