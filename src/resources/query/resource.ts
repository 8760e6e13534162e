import type { Scope } from '../../access/rights.ts';
import { getOrMake } from '../../base/get-or-make.ts';
import type { Selection } from '../../rows/selection.ts';
import type { Index } from '../../store/indexes.ts';
import type { StreamedRows, StreamReader } from '../../store/turns/readers.ts';
import type { Collection, Equality } from '../../store/store.ts';
import type { Alias, Form } from './form.ts';
import { keyOr, splitName } from './grammar.ts';
import type { IdType, Kind } from './kinds.ts';

/** A named set of rows that can be paged, streamed and partitioned. */
export interface Resource {
  readonly name: string;
  readonly rows: Collection;
  readonly form: Form;
  /** The indexes that it always has: a query that one of them answers is not refused while that is missing. */
  readonly declared: readonly Index[];
  /** The type that all its ids have. Absent: detected from the collection. */
  readonly idType?: IdType;
  /** What of the rows may leave the server. Nothing else may be used to filter or sort. */
  readonly shown: Selection;
  /** The kinds of fields that the operator declared, by path. */
  readonly kinds: ReadonlyMap<string, Kind>;
  /** The line that makes an index of these fields, for the operator. */
  readonly indexLine: (fields: readonly string[]) => string;
  /** Present: the client is not told `indexLine`, which names a collection. */
  readonly isTerse?: true;
  /** The reader of streams of its rows, of a part of them, or of a snapshot. */
  readonly streamsOf: (rows: StreamedRows) => StreamReader;
  /** Present: these are only the rows and fields that a key opens. No answer may depend on others. */
  readonly scope?: ResourceScope;
}

/** The part of a resource that a key opens. */
export interface ResourceScope {
  /** The values that all rows have. */
  readonly where: readonly Equality[];
  /** As the key has it. */
  readonly given: Scope;
}

/** The indexes that clients may know of, by the list that the store gives, and by the rows that are asked. */
const known = new WeakMap<readonly Index[], WeakMap<Collection, readonly Index[]>>();

/**
 * The indexes of a resource that clients may know of: none that holds a hidden value. For a key with a scope they
 * begin with the values of that, which may be hidden themselves. The same array until the store reads them again.
 */
export async function indexesOf(
  resource: Pick<Resource, 'rows' | 'shown' | 'scope'>,
  signal: AbortSignal,
): Promise<readonly Index[]> {
  const { indexes: all } = await resource.rows.describe(signal);
  const ofAll = getOrMake(known, all, () => new WeakMap<Collection, readonly Index[]>());
  return getOrMake(ofAll, resource.rows, () => visible(all, resource));
}

function visible(
  all: readonly Index[],
  { shown, scope }: Pick<Resource, 'shown' | 'scope'>,
): readonly Index[] {
  const own = (scope?.where ?? []).map(({ path }) => path);
  return all.filter(({ keys }) => {
    const first = keys.slice(0, own.length).map(({ path }) => path);
    const begins = first.length === own.length && own.every((path) => first.includes(path));
    return begins && keys.slice(own.length).every(({ path }) => shown.leavesWhole(path));
  });
}

const NONE: readonly Alias[] = [];

/** The aliases of an open form, but for those of hidden fields: they are names like any other. */
export function aliasesOf({ form, shown }: Pick<Resource, 'form' | 'shown'>): readonly Alias[] {
  const { aliases = NONE } = form;
  return aliases.length === 0
    ? NONE
    : aliases.filter(({ to }) => shown.leavesWhole(keyOr(splitName(to).path)));
}
