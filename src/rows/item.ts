import { Decimal128, onDemand } from '../store/bson.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import { extendedJson } from './extended.ts';
import { Type } from '../schema.ts';
import { serializerOf } from './serializers.ts';

/**
 * Serializes an object in the form that toJson makes of a row: its key first, then all other fields in the object's
 * order.
 */
const serialize = { id: fieldsAfter('id'), _id: fieldsAfter('_id') };

function fieldsAfter(key: KeyName): (fields: Readonly<Record<string, unknown>>) => string {
  const schema = { type: 'object', properties: { [key]: {} }, additionalProperties: true };
  return serializerOf(Type.Unsafe<Readonly<Record<string, unknown>>>(schema));
}

/** MongoDB stores 180 levels and refuses 181 (measured on 6.0.5), so every row that a server can hold is written. */
const DEEPEST = 180;
const FARTHEST_DATE = 8_640_000_000_000_000n;

/**
 * Converts an item (one BSON document) to JSON text with the precompiled serializer. The wasm transcoder writes the
 * same form byte for byte:
 *
 * - The key `_id` comes first, as `id`. All other fields follow in stored order. In a document with its own top-level
 *   field `id`, shown or not, the key is called `_id`, and that field keeps its name and place.
 * - Date: toISOString; ObjectId: hex; UUID: canonical; other Binary: base64; undefined, NaN and infinities: null.
 * - Int64 and Decimal128: their exact digits. Other numbers and strings: as JSON.stringify prints them. Broken UTF-8 is
 *   replaced by U+FFFD as the WHATWG decoder does.
 * - The rest (Timestamp, regular expression, code, symbol, DBPointer, MinKey, MaxKey, dates beyond JavaScript's):
 *   relaxed Extended JSON.
 *
 * With `shown`, only these top-level fields and the key are written. Throws when the bytes are not a sound document,
 * have no `_id`, or nest deeper than 180 levels.
 */
export function itemToJson(row: Uint8Array, shown?: ReadonlySet<string>): string {
  return new ItemReader(row).toJson(shown);
}

/**
 * The JSON texts of an item's top-level values, by their stored names. Of several fields with the same name the first
 * one counts. Undefined where the item has no such field. Throws as itemToJson does.
 */
export function itemValues(row: Uint8Array, names: readonly string[]): (string | undefined)[] {
  return new ItemReader(row).values(names);
}

/**
 * JavaScript objects and numbers cannot represent everything: keys like "1" change their place, equal keys become one,
 * 2^53 + 1 has no double. Such a key or number goes through the serializer as a marked stand-in, which is replaced in
 * the text afterwards. The mark does not occur in the document's bytes, so no stored value can pass for a stand-in:
 *
 *   a key    "<mark>7/1"     ->  "1"      (7: any number, which makes keys differ)
 *   a number "<mark>=123"    ->  123
 */
class ItemReader {
  readonly #bytes: Buffer;
  #mark: string | null = null;
  #keys = 0;

  constructor(row: Uint8Array) {
    this.#bytes = Buffer.from(row.buffer, row.byteOffset, row.byteLength);
  }

  toJson(shown: ReadonlySet<string> | undefined): string {
    this.#checkLength();
    const elements = this.#elements(0, 1);
    const hasOwnId = elements.some((element) => this.#name(element) === 'id');
    const keyName = hasOwnId ? '_id' : 'id';
    return this.#serialize(this.#item(elements, keyName, shown), keyName);
  }

  values(names: readonly string[]): (string | undefined)[] {
    this.#checkLength();
    const elements = this.#elements(0, 1);
    if (!elements.some((element) => this.#name(element) === '_id'))
      throw new Error('The document has no _id');
    return names.map((name) => {
      const element = elements.find((candidate) => this.#name(candidate) === name);
      return element && this.#serialize({ id: this.#value(element, 1) }).slice('{"id":'.length, -1);
    });
  }

  #checkLength(): void {
    if (this.#bytes.readInt32LE(0) !== this.#bytes.length) throw new Error('The document has another length');
  }

  #serialize(fields: Record<string, unknown>, keyName: KeyName = 'id'): string {
    const text = serialize[keyName](fields);
    if (this.#mark === null) return text;
    const standIns = new RegExp(`"${this.#mark}(?:=([^"]+)"|\\d+/)`, 'g');
    return text.replace(standIns, (_, digits: string | undefined) => digits ?? '"');
  }

  #item(
    elements: readonly Element[],
    keyName: KeyName,
    shown: ReadonlySet<string> | undefined,
  ): Record<string, unknown> {
    const fields = Object.create(null) as Record<string, unknown>;
    const id = elements.find((element) => this.#name(element) === '_id');
    if (!id) throw new Error('The document has no _id');
    fields[keyName] = this.#value(id, 1);
    for (const element of elements) {
      const name = this.#name(element);
      if (name === '_id' || shown?.has(name) === false) continue;
      this.#set(fields, name, this.#value(element, 1));
    }
    return fields;
  }

  #document(at: number, depth: number): Record<string, unknown> {
    const fields = Object.create(null) as Record<string, unknown>;
    for (const element of this.#elements(at, depth)) {
      this.#set(fields, this.#name(element), this.#value(element, depth));
    }
    return fields;
  }

  #elements(at: number, depth: number): Element[] {
    if (depth > DEEPEST) throw new Error(`The document is nested more than ${DEEPEST} levels deep`);
    const elements = [...onDemand.parseToElements(this.#bytes, at)];
    for (const element of elements) this.#check(element);
    return elements;
  }

  /**
   * Checks what parseToElements does not: it ensures that each value ends inside its document, but not that the value
   * is sound.
   */
  #check([type, , , at, length]: Element): void {
    const bytes = this.#bytes;
    switch (type) {
      case BSON_TYPE.string:
      case BSON_TYPE.code:
      case BSON_TYPE.symbol:
      case BSON_TYPE.dbPointer: {
        const end = at + length - (type === BSON_TYPE.dbPointer ? 12 : 0);
        if (end - at < 5 || bytes[end - 1] !== 0) throw new Error('A string does not end where it says');
        return;
      }
      case BSON_TYPE.document:
      case BSON_TYPE.array:
        if (length < 5 || bytes[at + length - 1] !== 0)
          throw new Error('A document does not end where it says');
        return;
      case BSON_TYPE.binary:
        // The old subtype 2 repeats the length inside the value.
        if (bytes[at + 4] === 2 && (length < 9 || bytes.readInt32LE(at + 5) !== length - 9)) {
          throw new Error('A binary value has another length inside');
        }
    }
  }

  #set(fields: Record<string, unknown>, name: string, value: unknown): void {
    const isPlain = !/^\d/.test(name) && name !== '__proto__' && !(name in fields);
    fields[isPlain ? name : `${this.#marked()}${this.#keys++}/${name}`] = value;
  }

  #name([, at, length]: Element): string {
    return this.#text(at, at + length);
  }

  #value([type, , , at, length]: Element, depth: number): unknown {
    const bytes = this.#bytes;
    switch (type) {
      case BSON_TYPE.double: {
        const value = bytes.readDoubleLE(at);
        return Number.isFinite(value) ? value : null;
      }
      case BSON_TYPE.string:
        return this.#text(at + 4, at + length - 1);
      case BSON_TYPE.document:
        return this.#document(at, depth + 1);
      case BSON_TYPE.array:
        return this.#elements(at, depth + 1).map((element) => this.#value(element, depth + 1));
      case BSON_TYPE.binary:
        return this.#binary(at, length);
      case BSON_TYPE.undefined:
      case BSON_TYPE.null:
        return null;
      case BSON_TYPE.objectId:
        return bytes.toString('hex', at, at + 12);
      case BSON_TYPE.boolean:
        if (Number(bytes[at]) > 1) throw new Error('A boolean is neither 0 nor 1');
        return bytes[at] === 1;
      case BSON_TYPE.date:
        return date(bytes.readBigInt64LE(at));
      case BSON_TYPE.int32:
        return bytes.readInt32LE(at);
      case BSON_TYPE.int64:
        return this.#exact(String(bytes.readBigInt64LE(at)));
      case BSON_TYPE.decimal128: {
        const text = new Decimal128(bytes.subarray(at, at + 16)).toString();
        return /\d/.test(text) ? this.#exact(text) : null;
      }
      default:
        return extendedJson(type, bytes.subarray(at, at + length));
    }
  }

  #binary(at: number, length: number): string {
    const bytes = this.#bytes;
    const subtype = bytes[at + 4];
    if (subtype === 4 && length === 21) {
      return bytes.toString('hex', at + 5, at + 21).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    }
    return bytes.toString('base64', at + (subtype === 2 ? 9 : 5), at + length);
  }

  /** A number from its digits: a JavaScript number if that prints the same digits, otherwise a stand-in. */
  #exact(digits: string): number | string {
    const value = Number(digits);
    return JSON.stringify(value) === digits ? value : `${this.#marked()}=${digits}`;
  }

  #text(start: number, end: number): string {
    return this.#bytes.toString('utf8', start, end);
  }

  #marked(): string {
    for (let i = 0; this.#mark === null; i++) {
      if (!this.#bytes.includes(`~${i}~`)) this.#mark = `~${i}~`;
    }
    return this.#mark;
  }
}

/** The name under which a document's key is shown. */
type KeyName = 'id' | '_id';

type Element = readonly [type: number, nameAt: number, nameLength: number, at: number, length: number];

function date(milliseconds: bigint): unknown {
  const isFar = milliseconds > FARTHEST_DATE || milliseconds < -FARTHEST_DATE;
  return isFar
    ? { $date: { $numberLong: String(milliseconds) } }
    : new Date(Number(milliseconds)).toISOString();
}
