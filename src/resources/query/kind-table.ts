import { awaitAtMost, withDeadline } from '../../store/turns/deadline.ts';
import { rowsOf } from '../../store/batch.ts';
import { KEY, valueBookmarkOf } from '../../store/bookmark.ts';
import type { Index } from '../../store/indexes.ts';
import type { Collection } from '../../store/store.ts';
import { areFound } from './found-values.ts';
import { BRACKETS, kindOfType } from './brackets.ts';
import type { TextKind } from './kinds.ts';
import type { Resource } from './resource.ts';

/** What the values of a field are, for lists and imports: no query is read by them. */
export interface FieldKinds {
  readonly kinds: ReadonlySet<TextKind>;
  /** The BSON types that a sample of rows has. */
  readonly sampled: ReadonlySet<number>;
}

/** How long a look may take, and how many rows each end of a sample has. Milliseconds; rows; bytes. */
const LOOK_MS = 10_000;
const SAMPLE = { rows: 100, bytes: 1024 * 1024 };

/** What is known of the fields of collections, with the last list of indexes. */
const tables = new WeakMap<Collection, KindTable>();
interface KindTable {
  readonly with: readonly Index[];
  readonly of: Map<string, Promise<FieldKinds> | FieldKinds>;
}

type Rows = Pick<Resource, 'rows' | 'scope'>;

/**
 * What the values of a path are. A field is looked at once for each list of indexes that the store gives: of the first field of
 * an index, every kind is known (one entry is read for each), of others those of a sample. Rejects as reads do.
 */
export async function kindsAt(resource: Rows, path: string, signal: AbortSignal): Promise<FieldKinds> {
  const { rows } = resource;
  const { indexes } = await rows.describe(signal);
  let table = tables.get(rows);
  if (table?.with !== indexes) tables.set(rows, (table = { with: indexes, of: new Map() }));
  const known = table.of;
  const found = known.get(path);
  if (found && !(found instanceof Promise)) return found;
  const looking = found ?? withDeadline(LOOK_MS, undefined, (limit) => look(resource, path, indexes, limit));
  if (!found) {
    known.set(path, looking);
    const forget = () => known.delete(path);
    // Where no row has a value, rows may come at any time.
    looking.then((kinds) => (kinds.kinds.size > 0 ? known.set(path, kinds) : forget()), forget);
  }
  return awaitAtMost(LOOK_MS, signal, looking);
}

async function look({ rows, scope }: Rows, path: string, indexes: readonly Index[], signal: AbortSignal) {
  const sampled = await sample(rows, path, signal);
  const index = indexBeginningWith(path, indexes, scope);
  if (!index) return { kinds: new Set([...sampled].flatMap((type) => kindOfType(type) ?? [])), sampled };
  const place = { index, equals: [] };
  const ranges = [...BRACKETS.values()].map((bracket) => ({ bracket }));
  const found = await areFound(rows, place, ranges, signal);
  return { kinds: new Set([...BRACKETS.keys()].filter((_, n) => found[n])), sampled };
}

/** An index that has a path as its first field behind those at which all rows have one value. */
export function indexBeginningWith(
  path: string,
  indexes: readonly Index[],
  scope: Rows['scope'],
): Index | undefined {
  const where = (scope?.where ?? []).map((one) => one.path);
  return indexes.find((one) => one.refused === undefined && isFirst(one, path, where));
}

function isFirst({ keys }: Index, path: string, where: readonly string[]): boolean {
  const own = keys.slice(0, where.length).map((key) => key.path);
  return keys[own.length]?.path === path && where.every((one) => own.includes(one));
}

/** The types at a path in the first and the last rows. */
async function sample(rows: Collection, path: string, signal: AbortSignal): Promise<ReadonlySet<number>> {
  const types = new Set<number>();
  for (const direction of [1, -1] as const) {
    const batch = await rows.read({ sort: KEY, direction }, {}, SAMPLE, signal);
    for (const row of rowsOf(batch)) types.add(valueBookmarkOf(row, path)[TYPE_AT] ?? 0);
    batch.release();
  }
  return types;
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;
