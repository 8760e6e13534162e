import type { Client } from '../../access/admission.ts';
import type { PlanParameters } from '../page/parameters.ts';
import type { StreamReader } from '../../store/readers.ts';
import type { Plan, Collection } from '../../store/store.ts';
import type { ReadId } from './id.ts';

/** What the routes of a collection read: all of it, or the part that a client's key opens. */
export interface RowSource {
  readonly rows: Collection;
  readonly streams: StreamReader;
  readonly plan: PlanParameters;
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  readonly after: AfterForm;
  readonly readId: ReadId;
  /** The place from which the changes of a set follow that is about to be read. */
  readonly changesFrom: ChangesFrom;
  /** Begins to ask for the number of a plan's rows. */
  readonly estimate: (plan: Plan) => Estimated;
}

/** The number of rows, or null when it is not known. To be called when the first batch has been read. */
export type Estimated = () => Promise<number | null>;

/** A row as clients name it: by the value that orders it, if rows are not ordered by id, and by its id. */
export interface Named {
  readonly id: string;
  readonly value: string | null;
}

/** How the rows of a collection are named in an order other than that of their ids. */
export interface AfterForm {
  /** What `after` must be, for error messages. */
  readonly expected: string;
  /** Splits a text. Null when it names no row so. AppError when no text can name such a row. */
  readonly split: (given: string) => Named | null;
  /** Whether the JSON of a value (`shown`) is the value that a client gave. */
  readonly isShown: (shown: string, value: string) => boolean;
  /** The value of the type of `like` that a text stands for, as a BSON class. Undefined: it stands for none. */
  readonly parse: (value: string, like: unknown) => unknown;
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
