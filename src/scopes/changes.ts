import { AppError } from '../errors.ts';
import { ScopedFeed } from '../store/scoped-feed.ts';
import type { RowStore } from '../store/store.ts';
import type { ScopedRoutes } from './routes.ts';

/** How long reading the keys waits for a store. Milliseconds. */
const LOOK_MS = 10_000;

/** Whether the changes of a part are told, and why they are not. While the store is away nothing is known against it. */
export async function changesOfPart({
  changes,
}: Pick<RowStore, 'changes'>): Promise<ScopedRoutes['changes']> {
  if (!(changes instanceof ScopedFeed)) return { are: false, refusal: 'Its store does not tell changes.' };
  const signal = AbortSignal.timeout(LOOK_MS);
  try {
    return { are: true, refusal: await changes.refusal(signal) };
  } catch (error) {
    if (error instanceof AppError || signal.aborted) return { are: true, refusal: null };
    throw error;
  }
}
