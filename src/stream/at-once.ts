/** Returns a function that runs work, at most `most` at a time. Further work waits for its turn. */
export function atOnce(most: number): <R>(work: () => Promise<R>) => Promise<R> {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  return async (work) => {
    if (underWay < most) underWay++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next)
        next(); // takes over this place
      else underWay--;
    }
  };
}
