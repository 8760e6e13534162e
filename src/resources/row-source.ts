import type { Client } from '../access/admission.ts';
import type { Query } from '../input/query.ts';
import type { DeclaredKinds } from '../rows/arrow/columns.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Selection } from '../rows/selection.ts';
import type { StreamReader } from '../store/readers.ts';
import type { Plan, Collection } from '../store/store.ts';
import type { Estimated } from './stream/estimate.ts';
import type { Resource } from './query/resource.ts';
import type { Token } from './token/token.ts';

/** What the routes of a collection read: all of it, or the part that a client's key opens. */
export interface RowSource {
  readonly resource: Resource;
  /** The collection's name. Its cursors do not fit any other collection. */
  readonly collection: string;
  readonly rows: Collection;
  readonly streams: StreamReader;
  /**
   * Reads how rows are chosen and ordered. A plan that needs a look at the rows comes later; it ends with the signal's
   * reason when that aborts. `token`: the cursor or part of the request, which says how its texts are read. Absent: its
   * walk begins now. `isById`: a query without an order takes that of ids, and no other that an index has.
   */
  readonly readPlan: (
    query: Query,
    signal: AbortSignal,
    token?: Pick<Token, 'types' | 'kind' | 'body'>,
    isById?: boolean,
  ) => Plan | Promise<Plan>;
  /** The paths of the fields asked for. undefined: all. */
  readonly readFields: (query: Query) => readonly string[] | undefined;
  /** What of the rows may leave the server. */
  readonly shown: Selection;
  /** The kinds that columns of Arrow have without a look at the rows. */
  readonly columnKinds: DeclaredKinds | undefined;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  /** The place from which the changes of a set follow that is about to be read. */
  readonly changesFrom: ChangesFrom;
  /** Begins to ask for the number of a plan's rows. */
  readonly estimate: (plan: Plan) => Estimated;
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

/** Resolves to the present place in the history of a plan's rows. Null where there are no changes. */
export type ChangesFrom = (plan: Plan, signal: AbortSignal) => Promise<ChangesStart | null>;

export function headersOf(start: ChangesStart | null): Readonly<Record<string, string>> {
  return start ? { [CHANGES_HEADER]: start.cursor } : {};
}

/** The most that a client may ask for. */
export interface PageLimits {
  readonly maxLimit: number;
  readonly maxOffset: number;
}

/** What the routes of a collection are given. */
export interface RouteOptions {
  readonly sourceFor: SourceFor;
  readonly transcoder: Transcoder;
  readonly limits: PageLimits;
  /** Cache-Control of pages and single rows. */
  readonly cacheControl: string;
  /** Called when a stream stalls. The returned function is called when the stream goes on or ends. */
  readonly parked: () => () => void;
  /** A feed that has nothing to send sends a checkpoint after this time. Milliseconds. */
  readonly heartbeatMs: number;
  /** Aborted when the server stops. Feeds then end at a checkpoint. */
  readonly stopping: AbortSignal;
}
