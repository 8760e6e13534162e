/**
 * Does work on the items of a list, at most so many at once, and yields the results in the order of the items. So no more than
 * that many results are held. The signal of the work is aborted when one fails, or when the reader stops.
 */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  parallel: number,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  const stop = new AbortController();
  const under: Promise<Result>[] = [];
  const begin = (item: Item) => {
    const begun = work(item, stop.signal);
    begun.catch(() => undefined); // it is awaited in its turn, or stopped
    under.push(begun);
  };
  try {
    for await (const item of items) {
      begin(item);
      const [first] = under;
      if (under.length < parallel || !first) continue;
      yield await first;
      void under.shift();
    }
    for (const one of under) yield await one;
  } finally {
    stop.abort(new Error('the reader has stopped'));
    await Promise.allSettled(under);
  }
}
