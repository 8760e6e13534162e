/**
 * Yields the results of `work` for each value, in the order of the values. While the caller takes a result, the next
 * values are already worked on, at most `depth` at a time. Rejects with the first failure, after all work under way has
 * settled.
 */
export async function* prefetch<T, R>(
  values: AsyncIterable<T>,
  depth: number,
  work: (value: T) => Promise<R>,
): AsyncGenerator<R, void, undefined> {
  const underWay: Promise<R>[] = [];
  try {
    for await (const value of values) {
      const result = work(value);
      result.catch(() => undefined); // handled when its turn comes
      underWay.push(result);
      const [first] = underWay;
      if (first === undefined || underWay.length < depth) continue;
      yield await first;
      void underWay.shift(); // it has settled
    }
    for (const result of underWay) yield await result;
  } finally {
    await Promise.allSettled(underWay);
  }
}
