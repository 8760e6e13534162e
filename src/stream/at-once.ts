/** Runs work, at most `most` at a time; what comes while so much is under way waits for its turn. */
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
        next(); // takes this place
      else underWay--;
    }
  };
}
