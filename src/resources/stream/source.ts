import type { Client } from '../../access/admission.ts';
import type { PlanParameters } from '../page/query.ts';
import type { StreamReader } from '../../store/readers.ts';
import type { Plan, RowStore } from '../../store/store.ts';
import type { AfterForm } from './after.ts';
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

/** The header that says from where the changes of a set follow. */
export const CHANGES_HEADER = 'changes-from';

/** A place in the history of a set before it was read. */
export interface ChangesStart {
  /** As clients carry it. */
  readonly cursor: string;
  /** What a plan needs so that its reads see every change before the place. */
  readonly bounds: Pick<Plan, 'since' | 'identity'>;
}

/** Resolves to the present place in the history of a plan's rows. Null where changes are not told. */
export type ChangesFrom = (plan: Plan, signal: AbortSignal) => Promise<ChangesStart | null>;

/** The headers that tell a start. */
export function headersOf(start: ChangesStart | null): Readonly<Record<string, string>> {
  return start ? { [CHANGES_HEADER]: start.cursor } : {};
}
