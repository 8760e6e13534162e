import { isUtf8 } from 'node:buffer';
import { quoted } from '../terminal/text.ts';
import { DocumentWriter, nameBytes } from './document-writer.ts';
import type { FieldName, FieldTarget } from './field-names.ts';
import type { FieldTypes } from './field-types.ts';
import { JsonReader } from './json-reader.ts';
import { Keys } from './keys.ts';
import { BadRow, NotJson } from './row.ts';
import { targetsOf, type Columns } from './targets.ts';

/**
 * Makes items of JSON texts, from their bytes to the bytes of BSON: the top-level fields in their order, mapped fields
 * under their new names, `_id` first.
 */
export class JsonRows {
  readonly #columns: Columns;
  readonly #types: FieldTypes;
  readonly #writer = new DocumentWriter();
  readonly #reader = new JsonReader(this.#writer);
  readonly #keys: Keys;
  /** The name that is expected first in a row. */
  readonly #root = { inner: null };
  readonly #writeField = (name: FieldName): void => this.#field(name);
  /** Whether the row is taken to have an `_id`, as the last one. A field `id` is then no id. */
  #hasOwnId = true;
  #isMistaken = false;
  /** The field whose value is being read. */
  #inside: string | null = null;

  constructor(columns: Columns, types: FieldTypes) {
    this.#columns = columns;
    this.#types = types;
    this.#keys = new Keys(this.#writer, columns.price !== null);
  }

  /** The item of a JSON object, as BSON. Throws NotJson when the text is not JSON, and BadRow when it is no item. */
  itemOf(text: Buffer): Uint8Array {
    if (!isUtf8(text)) throw new BadRow('the row is not valid UTF-8');
    const { id } = this.#columns;
    this.#inside = null;
    try {
      this.#read(text);
      if (this.#isMistaken || (this.#hasOwnId && id === null && !this.#keys.hasId)) {
        this.#hasOwnId = !this.#hasOwnId;
        this.#read(text);
      }
    } catch (error) {
      throw this.#located(error);
    }
    if (!this.#keys.hasId && id !== null) throw new BadRow(`the row has no field ${quoted(id)} for the id`);
    if (!this.#keys.hasId) this.#keys.addNewId();
    return this.#keys.end();
  }

  /** Names the field whose value has the fault. */
  #located(error: unknown): unknown {
    const isValue = error instanceof BadRow && !(error instanceof NotJson);
    return isValue && this.#inside !== null ? error.in(this.#inside) : error;
  }

  #read(text: Buffer): void {
    const reader = this.#reader;
    this.#isMistaken = false;
    this.#writer.begin();
    this.#keys.begin();
    reader.begin(text);
    const { isAtObject } = reader;
    if (isAtObject) reader.members(this.#root, 1, null, this.#writeField);
    else reader.value(nameBytes(''), this.#root, 2, null);
    reader.end();
    if (!isAtObject) throw new BadRow('the row is not a JSON object');
  }

  /** Writes a top-level field as each of the fields that it becomes. */
  #field(name: FieldName): void {
    const [reader, writer] = [this.#reader, this.#writer];
    const declared = this.#types.of(name.text);
    const targets = (name.targets[Number(this.#hasOwnId)] ??= this.#targetsOf(name.text));
    const { at } = reader;
    this.#inside = name.text;
    for (const { role, bytes } of targets) {
      reader.at = at;
      if (role !== 'field') this.#keys.add(role);
      reader.value(bytes, name, 2, declared);
      if (role === 'id') this.#keys.endId();
    }
    if (targets.length === 0) {
      if (name.text === '_id') this.#isMistaken = this.#columns.id === null;
      const { offset } = writer;
      reader.value(name.bytes, name, 2, declared);
      writer.rewind(offset);
    }
    this.#inside = null;
  }

  #targetsOf(name: string): readonly FieldTarget[] {
    const idField = this.#columns.id ?? (this.#hasOwnId ? '_id' : 'id');
    const targets = targetsOf(name, idField, this.#columns, true);
    return targets.map(({ role, path: [field = ''] }) => ({ role, bytes: nameBytes(field) }));
  }
}
