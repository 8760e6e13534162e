import { Binary } from '../../store/values/bson.ts';
import { REST, scaleOf, type Column, type ColumnKind, type DeclaredKinds } from '../../rows/arrow/columns.ts';
import { columnsOfFields, MOST_COLUMNS, SAMPLED_ROWS, storedNames } from '../../rows/csv-cell.ts';
import { byteString, View } from '../../rows/view.ts';
import { placesBetween } from '../../store/values/interpolate-keys.ts';
import { rowsOf, type Batch } from '../../store/batch.ts';
import { KEY } from '../../store/bookmark.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import type { AmongValues } from '../../store/plan.ts';
import type { From, Plan, Size } from '../../store/store.ts';
import { columnKinds } from '../query/kinds.ts';
import { elementsAt, isShown, nameOf, type Element } from '../stored-elements.ts';
import type { FormatRequest, BegunRows, FormRows } from './formats/format.ts';

/** At how many places inside a set rows are sampled for Arrow, beside its two ends. */
const PLACES = 8;
const ROWS_AT_PLACE = 100;
const BATCH_BYTES = 768 * 1024;

/** The columns of fields, when all kinds are declared and none is a decimal, whose scale only rows have. */
export function declaredColumns(
  fields: readonly string[] | undefined,
  resource: FormatRequest['resource'],
): readonly Column[] | undefined {
  const kinds = columnKinds(resource);
  if (!fields || !kinds) return undefined;
  const names = columnsOfFields(fields);
  const stored = storedNames(names, true);
  const columns = names.flatMap((name, at): Column[] => {
    const kind = kinds.get(stored[at] ?? name);
    return kind && kind !== 'decimal' ? [{ name, kind }] : [];
  });
  return columns.length === names.length ? columns : undefined;
}

/**
 * The columns of Arrow: `fields`, or those of about 1,000 rows from all over the set. Kinds are declared, or those of
 * the values in these rows. A column with several kinds that are not all numbers, or with none, is JSON. A value that
 * turns up later and does not fit stands in `_rest`.
 */
export async function arrowColumns(set: FormRows): Promise<readonly Column[]> {
  const { resource, fields } = set;
  return declaredColumns(fields, resource) ?? (await sampledColumns(set)).columns;
}

/** The same by rows in any case, and how many rows say so. */
export async function sampledColumns(
  set: FormRows,
): Promise<{ readonly columns: readonly Column[]; readonly rows: number }> {
  const { resource, fields } = set;
  const seen = sampler(fields ? columnsOfFields(fields) : null, resource);
  let rows = 0;
  for await (const batch of sampled(set))
    try {
      seen.add(batch);
      rows += batch.rows;
    } finally {
      batch.release();
    }
  const all = seen.columns(columnKinds(resource));
  return { columns: all.filter(({ name }) => fields !== undefined || name !== REST), rows };
}

/**
 * The columns of text without `fields`: those of every row, then those of the first 1,000 rows (or `most`) as they
 * appear. Hidden fields have none. The key is `_id`, before `id`, if one of these rows has a field `id` of its own.
 */
export async function textColumns({
  resource,
  plan,
  first,
  most,
  signal,
}: Omit<BegunRows, 'fields'>): Promise<readonly string[]> {
  const seen = sampler(null, resource);
  const wanted = Math.min(SAMPLED_ROWS, most);
  seen.add(first);
  let { last, more } = first;
  let left = wanted - first.rows;
  while (more && last && left > 0) {
    const batch = await resource.rows.read(plan, { after: last }, { rows: left, bytes: BATCH_BYTES }, signal);
    try {
      seen.add(batch);
    } finally {
      batch.release();
    }
    left -= batch.rows;
    ({ last, more } = batch);
  }
  const [key = 'id', ...names] = seen.columns(undefined).map(({ name }) => name);
  return key === KEY ? [key, 'id', ...names.filter((name) => name !== 'id')] : [key, ...names];
}

async function* sampled({
  resource: { rows },
  plan,
  signal,
}: FormRows): AsyncGenerator<Batch, void, undefined> {
  const size = { rows: ROWS_AT_PLACE, bytes: BATCH_BYTES };
  const from = (after: From['after']) => rows.read(plan, after ? { after } : {}, size, signal);
  const first = await from(undefined);
  const isAll = !first.more;
  const low = first.last;
  yield first;
  if (isAll) return;
  const end = await rows.read(reversed(plan), {}, size, signal);
  const high = end.last;
  yield end;
  if (!low || !high) return;
  if (plan.among) {
    yield* sampledAmong(rows, { ...plan, among: plan.among }, size, signal);
    return;
  }
  const maySplit = plan.sort === KEY && plan.direction === 1 && !plan.range;
  // A store may count all rows to split them, which is not worth it where places can be calculated.
  const places =
    placesBetween(low, high, PLACES, plan.sort) ?? (maySplit ? await rows.split(plan, PLACES, signal) : []);
  for (const place of places) yield await from(place);
}

/** The plan from its other end. */
function reversed({ among, ...plan }: Plan): Plan {
  const turned = among && { among: { ...among, values: among.values.toReversed() } };
  return { ...plan, direction: plan.direction === 1 ? -1 : 1, ...turned };
}

/** The first rows of some of several values. */
async function* sampledAmong(
  rows: FormRows['resource']['rows'],
  { among, ...plan }: Plan & { readonly among: AmongValues },
  size: Size,
  signal: AbortSignal,
): AsyncGenerator<Batch, void, undefined> {
  const step = Math.ceil(among.values.length / PLACES);
  for (let n = 0; n < among.values.length; n += step)
    yield await rows.read(
      { ...plan, among: { ...among, values: among.values.slice(n, n + 1) } },
      {},
      size,
      signal,
    );
}

/** Notes what sampled rows have in the columns of these fields (null: in all), and says of what kinds these are. */
function sampler(names: readonly string[] | null, { form, shown: { policyView } }: FormRows['resource']) {
  const always = form.columns;
  const stored = names ? storedNames(names, true) : always.slice(1);
  /** The names of columns by the order in which they came, as rows store them, with the kinds of their values. */
  const found = new Map([KEY, ...stored].map((name) => [name, new Set<ColumnKind>()]));
  let hasOwnId = false;

  const kindAt = (name: string, declared: DeclaredKinds | undefined): ColumnKind => {
    const kind = declared?.get(name);
    const seen = found.get(name) ?? new Set<ColumnKind>();
    return kind === 'decimal' ? decimalOf(seen) : (kind ?? kindOfAll(seen));
  };

  const addPaths = (row: Buffer): void => {
    const elements = elementsAt(row, 0);
    for (const [path, kinds] of found) {
      const view = path === KEY || path.startsWith(`${KEY}.`) ? View.open : policyView;
      note(kinds, row, valueAt(row, elements, path, view));
    }
  };
  const addFields = (row: Buffer): void => {
    for (const element of elementsAt(row, 0)) {
      const name = nameOf(row, element);
      if (name !== KEY && !isShown(policyView.field(byteString(name)), element)) continue;
      if (name === 'id') hasOwnId = true;
      const known = found.get(name);
      if (known) note(known, row, element);
      else if (found.size < MOST_COLUMNS) found.set(name, note(new Set(), row, element));
    }
  };

  return {
    add(batch: Batch): void {
      for (const { buffer, byteOffset, length } of rowsOf(batch))
        (names ? addPaths : addFields)(Buffer.from(buffer, byteOffset, length));
    },
    columns(declared: DeclaredKinds | undefined): readonly Column[] {
      if (names) return names.map((name, at) => ({ name, kind: kindAt(stored[at] ?? name, declared) }));
      const key = hasOwnId ? KEY : (always[0] ?? 'id');
      return [...found.keys()].map((name) => ({
        name: name === KEY ? key : name,
        kind: kindAt(name, declared),
      }));
    },
  };
}

/** The first shown value on a path, below the elements of a document. An array on the way is the value itself. */
function valueAt(row: Buffer, elements: readonly Element[], path: string, view: View): Element | undefined {
  for (const element of elements) {
    const name = nameOf(row, element);
    if (name !== path && !path.startsWith(`${name}.`)) continue;
    const below = view.field(byteString(name));
    if (!below || !isShown(below, element)) continue;
    if (name === path || element[0] === BSON_TYPE.array) return element;
    if (element[0] !== BSON_TYPE.document) continue;
    const rest = path.slice(name.length + 1);
    const found = valueAt(row, elementsAt(row, element[3]), rest, below);
    if (found) return found;
  }
  return undefined;
}

/** Adds the kind of a value, unless it is null. */
function note(kinds: Set<ColumnKind>, row: Buffer, element: Element | undefined): Set<ColumnKind> {
  const kind = element && kindOfValue(row, element);
  if (kind) kinds.add(kind);
  return kinds;
}

function kindOfAll(kinds: ReadonlySet<ColumnKind>): ColumnKind {
  const [first = 'json', ...others] = kinds;
  if (others.length === 0) return first;
  const isDecimal = (kind: ColumnKind) => kind === 'integer' || scaleOf(kind) !== undefined;
  if ([...kinds].every(isDecimal)) return decimalOf(kinds);
  return [...kinds].every((kind) => kind === 'double' || isDecimal(kind)) ? 'double' : 'json';
}

/** The kind of decimals with the most places that were seen. */
function decimalOf(kinds: ReadonlySet<ColumnKind>): ColumnKind {
  return `decimal(38,${Math.max(0, ...[...kinds].map((kind) => scaleOf(kind) ?? 0))})`;
}

/** The kinds of values by their types. Null says nothing, and values of other types are JSON. */
const KINDS: ReadonlyMap<number, ColumnKind | null> = new Map([
  [BSON_TYPE.null, null],
  [BSON_TYPE.undefined, null],
  [BSON_TYPE.string, 'text'],
  [BSON_TYPE.objectId, 'objectId'],
  [BSON_TYPE.int32, 'integer'],
  [BSON_TYPE.int64, 'integer'],
  [BSON_TYPE.double, 'double'],
  [BSON_TYPE.boolean, 'boolean'],
  [BSON_TYPE.date, 'date'],
]);

function kindOfValue(row: Buffer, [type, , , at, length]: Element): ColumnKind | null {
  if (type === BSON_TYPE.decimal128) return kindOfDecimal(row.readUInt32LE(at + 12));
  if (type === BSON_TYPE.binary)
    return row[at + 4] === Binary.SUBTYPE_UUID && length === 21 ? 'uuid' : 'binary';
  const kind = KINDS.get(type);
  return kind === undefined ? 'json' : kind;
}

/** The kind of a Decimal128 by its last 4 bytes. One that no scale fits asks for none. */
function kindOfDecimal(head: number): ColumnKind | null {
  if (((head >>> 27) & 15) === 15) return null; // NaN and infinities, which rows show as null
  const scale = 6176 - ((head >>> 17) & 0x3fff);
  return `decimal(38,${scale > 0 && scale <= 38 ? scale : 0})`;
}
