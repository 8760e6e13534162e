import { BSON_TYPE } from '../store/bson-types.ts';
import { Binary, Decimal128, Long, ObjectId } from '../store/bson.ts';
import { MAX_ID_BYTES } from '../resources/row/id.ts';
import { quoted } from '../terminal/text.ts';
import { DocumentWriter, nameBytes } from './document-writer.ts';
import type { Role } from './fields.ts';
import { BadRow } from './row.ts';

const ID = nameBytes('_id');
const UNDERSCORE = 0x5f;
/** The lengths of the types and the names of elements. */
const HEADS = { id: '_id'.length + 2, category: 'category'.length + 2, price: 'price'.length + 2 };
const ITEM_ID = 'a string, an integer, an ObjectId or a UUID';
const ROW_ID = 'a value that is not null and no array';
/** The types of ids that documents of MongoDB cannot have. */
const NO_IDS: readonly number[] = [
  BSON_TYPE.null,
  BSON_TYPE.array,
  BSON_TYPE.regularExpression,
  BSON_TYPE.minKey,
  BSON_TYPE.maxKey,
];
/** The types of ids that items always may have. Others depend on the value. */
const ITEM_IDS: readonly number[] = [BSON_TYPE.string, BSON_TYPE.int32, BSON_TYPE.int64, BSON_TYPE.objectId];

/** A field with rules of its own. */
type Ruled = Exclude<Role, 'field'>;

/** Writes the documents of rows, and checks the fields that have rules of their own. */
export class RowWriter extends DocumentWriter {
  readonly #isItem: boolean;
  /** The number of rows that got a new ObjectId. */
  newIds = 0;
  /** Where the elements of these fields begin and end. -1: the row has none so far. */
  readonly #from = { id: -1, category: -1, price: -1, field: -1 };
  readonly #to = { id: -1, category: -1, price: -1, field: -1 };

  /** `isItem`: whether the rows are items, which have a category and a price. */
  constructor(isItem: boolean) {
    super();
    this.#isItem = isItem;
  }

  override begin(): void {
    super.begin();
    const from = this.#from;
    from.id = from.category = from.price = -1;
  }

  get hasId(): boolean {
    return this.#from.id >= 0;
  }

  /** Makes an element the field of a role: the last one, if no offset is given where it ends. */
  add(role: Role, from: number, to = this.offset): void {
    this.#from[role] = from;
    this.#to[role] = to;
  }

  /** Ends the row, with its id first, or a new ObjectId. Throws BadRow when a field is missing or has a value that it may not have. */
  endRow(): Uint8Array {
    const isNew = !this.hasId;
    if (isNew) this.#addNewId();
    this.#check('id', this.#mayBeId(), this.#isItem ? ITEM_ID : ROW_ID);
    if (this.#isItem) {
      this.#check('category', this.#typeOf('category') === BSON_TYPE.string, 'a string');
      this.#check('price', this.#mayBePrice(), 'a finite number');
    }
    const { id } = this.#from;
    if (id !== 4 || this.byteAt(id + 1) !== UNDERSCORE) this.moveToFront(id, this.#to.id, ID);
    const row = this.end(this.#isItem ? 'item' : 'row');
    this.newIds += Number(isNew);
    return row;
  }

  #addNewId(): void {
    const { offset } = this;
    this.element(BSON_TYPE.objectId, ID);
    this.put(new ObjectId().id);
    this.add('id', offset);
  }

  #check(role: Ruled, isAllowed: boolean, expected: string): void {
    const from = this.#from[role];
    if (from < 0) throw new BadRow(`the row has no ${role}`);
    if (!isAllowed)
      throw new BadRow(`the ${role} is ${described(this.#valueOf(role))}; expected ${expected}`);
    if (role === 'price' || this.byteAt(from) !== BSON_TYPE.string) return;
    const bytes = this.int32At(this.#valueAt(role)) - 1;
    if (bytes === 0 && role === 'id') throw new BadRow('the id is empty');
    if (bytes > MAX_ID_BYTES)
      throw new BadRow(`the ${role} has ${bytes} bytes; the maximum is ${MAX_ID_BYTES}`);
  }

  #typeOf(role: Ruled): number {
    return this.byteAt(this.#from[role]);
  }

  /** Where the value of a field begins. A row without a field `_id` has its id in the field `id`. */
  #valueAt(role: Ruled): number {
    const from = this.#from[role];
    const isShort = role === 'id' && this.byteAt(from + 1) !== UNDERSCORE;
    return from + HEADS[role] - Number(isShort);
  }

  #valueOf(role: Ruled): unknown {
    return this.valueAt(this.#from[role], this.#to[role]);
  }

  #mayBeId(): boolean {
    const type = this.#typeOf('id');
    if (!this.#isItem) return !NO_IDS.includes(type);
    if (ITEM_IDS.includes(type)) return true;
    const value = this.#valueOf('id');
    return Number.isSafeInteger(value) || (value instanceof Binary && value.sub_type === Binary.SUBTYPE_UUID);
  }

  #mayBePrice(): boolean {
    const type = this.#typeOf('price');
    if (type === BSON_TYPE.int32 || type === BSON_TYPE.int64) return true;
    if (type === BSON_TYPE.double) return Number.isFinite(this.doubleAt(this.#valueAt('price')));
    // It may exceed the range of a double.
    return type === BSON_TYPE.decimal128 && /\d/.test(String(this.#valueOf('price')));
  }
}

/** A value, for a message. */
function described(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return `the string ${quoted(value)}`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Long || value instanceof Decimal128) return value.toString();
  return value instanceof Date ? 'a date' : 'an object';
}
