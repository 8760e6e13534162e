import { Binary } from '../../store/values/bson.ts';
import { BSON_TYPE } from '../../store/values/bson-types.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Selection } from '../../rows/selection.ts';
import { byteString, View } from '../../rows/view.ts';
import { elementsAt, isShown, nameOf, type Element } from '../stored-elements.ts';

/** The kinds of values as JSON shows them. `extended`: an object of Extended JSON, such as that of a Timestamp. */
export type ValueKind =
  | 'null'
  | 'text'
  | 'objectId'
  | 'uuid'
  | 'base64'
  | 'date'
  | 'boolean'
  | 'integer'
  | 'decimal'
  | 'double'
  | 'extended';

/** What the values at one place of rows look like. */
export class Shape {
  readonly kinds = new Set<ValueKind>();
  /** Of values that are documents, their members. Null: these have so many names that the names are values themselves. */
  members: Map<string, Shape> | null | undefined;
  /** Of values that are arrays, their elements. */
  items: Shape | undefined;
}

/** What sampled rows look like, as a client sees them. */
export class RowShape {
  readonly key = new Shape();
  readonly fields = new Map<string, Shape>();
  /** The number of rows that were seen, and how many of them have a field `id` of their own. */
  rows = 0;
  withOwnId = 0;

  /** Adds a row, as far as a selection shows it. */
  add(row: Buffer, { policyView }: Pick<Selection, 'policyView'>): void {
    this.rows++;
    const elements = elementsAt(row, 0);
    if (elements.some((element) => nameOf(row, element) === 'id')) this.withOwnId++;
    for (const element of elements) {
      const name = nameOf(row, element);
      if (name === KEY) note(this.key, row, element, View.open, 1);
      else if (this.fields.size < MOST_FIELDS || this.fields.has(name))
        noteMember(this.fields, row, element, policyView, 1);
    }
  }
}

/** The most fields of a row, and the most names of members, beyond which a document is a map. */
const MOST_FIELDS = 1_000;
const MOST_MEMBERS = 100;
/** What lies deeper is not described. */
const DEEPEST = 20;

/** Adds the value of an element to what is known of its name, where it is shown. */
function noteMember(
  members: Map<string, Shape>,
  row: Buffer,
  element: Element,
  view: View,
  depth: number,
): void {
  const name = nameOf(row, element);
  const below = view.field(byteString(name));
  if (!isShown(below, element)) return;
  const shape = members.get(name) ?? new Shape();
  members.set(name, shape);
  note(shape, row, element, below, depth);
}

function note(shape: Shape, row: Buffer, element: Element, view: View, depth: number): void {
  const [type, , , at] = element;
  if (type === BSON_TYPE.document) noteDocument(shape, row, at, view, depth);
  else if (type === BSON_TYPE.array) noteArray(shape, row, at, view, depth);
  else shape.kinds.add(kindOf(row, element));
}

function noteDocument(shape: Shape, row: Buffer, at: number, view: View, depth: number): void {
  const elements = depth < DEEPEST ? elementsAt(row, at) : [];
  // A member such as `$ref` would read as a keyword of a schema.
  const isPlain = depth < DEEPEST && !elements.some((element) => nameOf(row, element).startsWith('$'));
  if (!isPlain || shape.members === null) {
    shape.members = null;
    return;
  }
  const members = (shape.members ??= new Map<string, Shape>());
  for (const element of elements) noteMember(members, row, element, view, depth + 1);
  if (members.size > MOST_MEMBERS) shape.members = null;
}

function noteArray(shape: Shape, row: Buffer, at: number, view: View, depth: number): void {
  const items = (shape.items ??= new Shape());
  if (depth >= DEEPEST) return;
  for (const element of elementsAt(row, at))
    if (isShown(view, element)) note(items, row, element, view, depth + 1);
}

const KINDS: ReadonlyMap<number, ValueKind> = new Map<number, ValueKind>([
  [BSON_TYPE.null, 'null'],
  [BSON_TYPE.undefined, 'null'],
  [BSON_TYPE.string, 'text'],
  [BSON_TYPE.objectId, 'objectId'],
  [BSON_TYPE.int32, 'integer'],
  [BSON_TYPE.int64, 'integer'],
  [BSON_TYPE.boolean, 'boolean'],
]);

/** As itemToJson in the tests says how values are shown. */
function kindOf(row: Buffer, [type, , , at, length]: Element): ValueKind {
  const kind = KINDS.get(type);
  if (kind !== undefined) return kind;
  if (type === BSON_TYPE.double) return Number.isFinite(row.readDoubleLE(at)) ? 'double' : 'null';
  if (type === BSON_TYPE.decimal128) return isFiniteDecimal(row.readUInt32LE(at + 12)) ? 'decimal' : 'null';
  if (type === BSON_TYPE.date) return kindOfDate(row.readBigInt64LE(at));
  if (type === BSON_TYPE.binary)
    return row[at + 4] === Binary.SUBTYPE_UUID && length === 21 ? 'uuid' : 'base64';
  return 'extended';
}

function isFiniteDecimal(head: number): boolean {
  return ((head >>> 27) & 15) !== 15;
}

const FIRST_DATE = BigInt(Date.parse('0000-01-01T00:00:00.000Z'));
const LAST_DATE = BigInt(Date.parse('9999-12-31T23:59:59.999Z'));
const FARTHEST_DATE = 8_640_000_000_000_000n;

/** RFC 3339 has the years from 0 to 9999. JavaScript shows others with a sign and six digits. */
function kindOfDate(time: bigint): ValueKind {
  if (time > FARTHEST_DATE || time < -FARTHEST_DATE) return 'extended';
  return time >= FIRST_DATE && time <= LAST_DATE ? 'date' : 'text';
}
