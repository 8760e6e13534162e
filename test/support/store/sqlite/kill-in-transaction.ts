import { Writes } from '../../../../src/store/sqlite/write/writes.ts';

const end = () => process.kill(process.pid, 'SIGKILL');

/**
 * Lets this process kill itself in transaction number `kill` from now on: `inside` it, or when it is on disk (`after`). Returns
 * a function that counts from the start again.
 */
export function killInTransaction(kill: number, where: string): () => void {
  let transactions = 0;
  const run = Reflect.get(Writes.prototype, 'run') as (
    this: Writes,
    ...call: Parameters<Writes['run']>
  ) => Promise<unknown>;
  const alone = Reflect.get(Writes.prototype, 'alone') as (
    this: Writes,
    work: () => Promise<unknown>,
  ) => Promise<unknown>;
  Writes.prototype.run = async function <T>(
    this: Writes,
    action: () => T,
    kind?: 'adds' | 'small',
  ): Promise<T> {
    const isLast = ++transactions === kill;
    const work = () => {
      const done = action();
      if (isLast && where === 'inside') end();
      return done;
    };
    const result = await run.call(this, work, kind);
    if (isLast) end();
    return result as T;
  };
  Writes.prototype.alone = async function <T>(this: Writes, work: () => Promise<T>): Promise<T> {
    const isLast = ++transactions === kill;
    const result = await alone.call(this, async () => {
      const working = work();
      if (isLast && where === 'inside') setImmediate(end);
      return working;
    });
    if (isLast) end();
    return result as T;
  };
  return () => {
    transactions = 0;
  };
}
