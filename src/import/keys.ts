import { BSON_TYPE } from '../store/bson-types.ts';
import { BSON, Decimal128, Long, ObjectId } from '../store/bson.ts';
import { MAX_ID_BYTES } from '../streams/id.ts';
import { quoted } from '../terminal/text.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';
import { BadRow } from './row.ts';
import type { Target } from './targets.ts';

const NAMES = { id: nameBytes('_id'), category: nameBytes('category'), price: nameBytes('price') };
const UUID_SUBTYPE = 4;
/** The bits in the last byte of a Decimal128 that is infinite or no number. */
const NOT_FINITE = 0x78;
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
/** The types of ids of items. A double must be a whole number, and a binary value a UUID. */
const ITEM_IDS: readonly number[] = [
  BSON_TYPE.string,
  BSON_TYPE.int32,
  BSON_TYPE.int64,
  BSON_TYPE.objectId,
  BSON_TYPE.double,
  BSON_TYPE.binary,
];

/** The fields with rules of their own in the document that is being written. */
export class Keys {
  readonly #writer: DocumentWriter;
  readonly #isItem: boolean;
  /** Where their elements begin. -1: the row has none so far. */
  readonly #offsets = { id: -1, category: -1, price: -1, field: -1 };
  #idEnd = -1;

  /** `isItem`: whether the rows are items, which have a category and a price. */
  constructor(writer: DocumentWriter, isItem: boolean) {
    this.#writer = writer;
    this.#isItem = isItem;
  }

  get hasId(): boolean {
    return this.#offsets.id >= 0;
  }

  /** Goes to a new row. */
  begin(): void {
    const offsets = this.#offsets;
    offsets.id = offsets.category = offsets.price = -1;
  }

  /** The next element becomes a field with rules. */
  add(role: Target['role']): void {
    this.#offsets[role] = this.#writer.offset;
  }

  /** The element for the id ends here. */
  endId(): void {
    this.#idEnd = this.#writer.offset;
  }

  /** Gives the row an id of its own. */
  addNewId(): void {
    this.add('id');
    this.#writer.element(BSON_TYPE.objectId, NAMES.id);
    this.#writer.put(new ObjectId().id);
    this.endId();
  }

  /** Ends the document, with its id first. Throws BadRow when a field is missing or has a value that it may not have. */
  end(): Uint8Array {
    this.#checkId(this.#offsets.id);
    if (this.#isItem) {
      this.#checkCategory(this.#offsets.category);
      this.#checkPrice(this.#offsets.price);
    }
    this.#writer.moveToFront(this.#offsets.id, this.#idEnd);
    return this.#writer.end(this.#isItem ? 'item' : 'row');
  }

  #checkId(offset: number): void {
    const type = this.#writer.byteAt(offset);
    if (type === BSON_TYPE.string) this.#checkLength('id', offset);
    if (this.#isItem ? !this.#isItemId(type, offset) : NO_IDS.includes(type))
      throw new BadRow(`the id is ${this.#described('_id')}; expected ${this.#isItem ? ITEM_ID : ROW_ID}`);
  }

  #isItemId(type: number, offset: number): boolean {
    const valueAt = offset + 1 + NAMES.id.length;
    if (type === BSON_TYPE.double) return Number.isSafeInteger(this.#writer.doubleAt(valueAt));
    if (type === BSON_TYPE.binary) return this.#writer.byteAt(valueAt + 4) === UUID_SUBTYPE;
    return ITEM_IDS.includes(type);
  }

  #checkCategory(offset: number): void {
    if (offset < 0) throw new BadRow('the row has no category');
    if (this.#writer.byteAt(offset) !== BSON_TYPE.string)
      throw new BadRow(`the category is ${this.#described('category')}; expected a string`);
    this.#checkLength('category', offset);
  }

  #checkPrice(offset: number): void {
    if (offset < 0) throw new BadRow('the row has no price');
    const type = this.#writer.byteAt(offset);
    if (type === BSON_TYPE.int32 || type === BSON_TYPE.int64) return;
    const valueAt = offset + 1 + NAMES.price.length;
    if (type === BSON_TYPE.double && Number.isFinite(this.#writer.doubleAt(valueAt))) return;
    // It may exceed the range of a double.
    if (type === BSON_TYPE.decimal128 && (this.#writer.byteAt(valueAt + 15) & NOT_FINITE) !== NOT_FINITE)
      return;
    throw new BadRow(`the price is ${this.#described('price')}; expected a finite number`);
  }

  #checkLength(field: 'id' | 'category', offset: number): void {
    const bytes = this.#writer.int32At(offset + 1 + NAMES[field].length) - 1;
    if (bytes === 0 && field === 'id') throw new BadRow('the id is empty');
    if (bytes > MAX_ID_BYTES)
      throw new BadRow(`the ${field} has ${bytes} bytes; the maximum is ${MAX_ID_BYTES}`);
  }

  /** The value of a field, for a message. */
  #described(field: string): string {
    const document = this.#writer.end('row');
    const value: unknown = BSON.deserialize(document, { promoteLongs: false, bsonRegExp: true })[field];
    if (value === null) return 'null';
    if (typeof value === 'string') return `the string ${quoted(value)}`;
    if (typeof value === 'number' || typeof value === 'boolean') return String(value);
    if (Array.isArray(value)) return 'an array';
    if (value instanceof Long || value instanceof Decimal128) return value.toString();
    return value instanceof Date ? 'a date' : 'an object';
  }
}
