import type { Client } from '../access/admission.ts';
import type { PlanParameters } from '../pages/query.ts';
import type { StreamReader } from '../store/readers.ts';
import type { RowStore } from '../store/store.ts';
import type { AfterForm } from './after.ts';
import type { ChangesFrom } from './changes-from.ts';
import type { estimator } from './estimate.ts';
import type { ReadId } from './id.ts';

/** What the routes of a collection read: all of it, or the part that a client's key opens. */
export interface RowSource {
  readonly rows: RowStore;
  readonly streams: StreamReader;
  readonly plan: PlanParameters;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  readonly after: AfterForm;
  readonly readId: ReadId;
  /** Tells from where the changes of a set follow that is about to be read. */
  readonly changesFrom: ChangesFrom;
  readonly estimate: ReturnType<typeof estimator>;
}

/** Resolves what a client may read. Each request asks it once. */
export type SourceFor<S = RowSource> = (client: Pick<Client, 'key'>) => S;
