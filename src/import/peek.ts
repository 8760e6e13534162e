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
  return { head, bytes: rejoin(head, iterator) };
}

async function* rejoin(head: Buffer, iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (head.length > 0) yield head;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}
