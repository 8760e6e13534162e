import { awaitAtMost, withDeadline } from '../../store/deadline.ts';
import { rowsOf } from '../../store/batch.ts';
import { KEY, valueBookmarkOf } from '../../store/bookmark.ts';
import { BSON_TYPE } from '../../store/bson-types.ts';
import type { Index } from '../../store/indexes.ts';
import type { Collection } from '../../store/store.ts';
import type { TextKind } from './kinds.ts';
import type { Resource } from './resource.ts';

/** The type that stands for the bracket of a kind, see ValueRange. */
export const BRACKETS: ReadonlyMap<TextKind, number> = new Map([
  ['number', BSON_TYPE.int32],
  ['objectid', BSON_TYPE.objectId],
  ['uuid', BSON_TYPE.binary],
  ['date', BSON_TYPE.date],
  ['boolean', BSON_TYPE.boolean],
  ['string', BSON_TYPE.string],
]);

const KIND_OF_TYPE: ReadonlyMap<number, TextKind> = new Map([
  ...[...BRACKETS].map(([kind, type]) => [type, kind] as const),
  [BSON_TYPE.double, 'number'],
  [BSON_TYPE.int64, 'number'],
  [BSON_TYPE.decimal128, 'number'],
  [BSON_TYPE.symbol, 'string'],
]);

/** The kind of values of a BSON type. Undefined: no text without a prefix stands for them. */
export function kindOfType(type: number): TextKind | undefined {
  return KIND_OF_TYPE.get(type);
}

/** What the values of a field are. */
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
  const where = (scope?.where ?? []).map((one) => one.path);
  const index = indexes.find((one) => one.refused === undefined && isFirst(one, path, where));
  if (!index) return { kinds: new Set([...sampled].flatMap((type) => kindOfType(type) ?? [])), sampled };
  const kinds = new Set<TextKind>();
  for (const [kind, bracket] of BRACKETS)
    if (await rows.nextValue(index, [], { bracket }, signal)) kinds.add(kind);
  return { kinds, sampled };
}

/** Whether a path is the first field of an index behind those at which all rows have one value. */
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
