import { BSON_TYPE } from '../store/values/bson-types.ts';
import { ObjectId } from '../store/values/bson.ts';
import { refusalOfRow, type RowCheck } from '../store/values/row-check.ts';
import { ITEM_CHECK } from '../resources/item-collection.ts';
import { MAX_ID_BYTES } from '../resources/row/id.ts';
import { DocumentWriter, FIRST, nameBytes } from './document-writer.ts';
import type { Columns } from './fields.ts';
import { BadRow } from './row.ts';

const KEY = nameBytes('_id');
const UNDERSCORE = 0x5f;
/** The bytes of a string beside its text: its length, and a NUL. */
const STRING_BYTES = 5;
/** The types that no key of an imported row has. MongoDB refuses most of them. */
const NO_KEYS: readonly number[] = [
  BSON_TYPE.null,
  BSON_TYPE.array,
  BSON_TYPE.regularExpression,
  BSON_TYPE.minKey,
  BSON_TYPE.maxKey,
];

/** Writes the documents of rows, with their keys first. */
export class RowWriter extends DocumentWriter {
  readonly #check: RowCheck | null;
  /** The number of rows that got a new ObjectId. */
  newKeys = 0;
  /** Where the element of the key begins and ends. -1: the row has none so far. */
  #from = -1;
  #to = -1;

  constructor({ price }: Columns) {
    super();
    this.#check = price === null ? null : ITEM_CHECK;
  }

  override begin(): void {
    super.begin();
    this.#from = -1;
  }

  get hasKey(): boolean {
    return this.#from >= 0;
  }

  /** Makes an element the key: the last one, if no offset is given where it ends. */
  setKey(from: number, to = this.offset): void {
    this.#from = from;
    this.#to = to;
  }

  /**
   * Ends the row, with a new ObjectId where it has no key. Throws BadRow when the row cannot be stored. `isChecked`: its values are
   * known to pass the check, which would walk over it.
   */
  endRow(isChecked = false): Uint8Array {
    const isNew = !this.hasKey;
    if (isNew) this.#addNewKey();
    const from = this.#from;
    this.#checkKey();
    if (from !== FIRST || this.byteAt(from + 1) !== UNDERSCORE) this.moveToFront(from, this.#to, KEY);
    const row = this.end();
    const refused = isChecked ? null : this.#check && refusalOfRow(row, this.#check);
    if (refused !== null) throw new BadRow(refused);
    this.newKeys += Number(isNew);
    return row;
  }

  #addNewKey(): void {
    const { offset } = this;
    this.element(BSON_TYPE.objectId, KEY);
    this.put(new ObjectId().id);
    this.setKey(offset);
  }

  #checkKey(): void {
    const type = this.byteAt(this.#from);
    if (NO_KEYS.includes(type))
      throw new BadRow('the id is null, an array, or of another type that no row has as its id');
    if (type !== BSON_TYPE.string) return;
    const bytes = this.valueLength(this.#from, this.#to) - STRING_BYTES;
    if (bytes === 0) throw new BadRow('the id is empty');
    if (bytes > MAX_ID_BYTES) throw new BadRow(`the id has ${bytes} bytes; the maximum is ${MAX_ID_BYTES}`);
  }
}
