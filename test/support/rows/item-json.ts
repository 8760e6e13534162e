import { Decimal128 } from '../../../src/store/values/bson.ts';
import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';
import { elementsAt, isNested, type Element } from './elements.ts';
import { extendedJson } from '../../../src/rows/machine.ts';
import { EVERYTHING, type Selection } from '../../../src/rows/selection.ts';
import { View } from '../../../src/rows/view.ts';

const FARTHEST_DATE = 8_640_000_000_000_000n;

/**
 * Converts an item (one BSON document) to JSON text. The wasm transcoder writes the same form byte for byte:
 *
 * - The key `_id` comes first, as `id`. All other fields follow in stored order. In a document with its own top-level
 *   field `id`, shown or not, the key is called `_id`, and that field keeps its name and place.
 * - Date: toISOString; ObjectId: hex; UUID: canonical; other Binary: base64; undefined, NaN and infinities: null.
 * - Int64 and Decimal128: their exact digits. Other numbers and strings: as JSON.stringify prints them. Broken UTF-8 is
 *   replaced by U+FFFD as the WHATWG decoder does.
 * - The rest (Timestamp, regular expression, code, symbol, DBPointer, MinKey, MaxKey, dates beyond JavaScript's):
 *   relaxed Extended JSON.
 *
 * Only the key and what is selected are written. Throws when the bytes are not a sound document, have no `_id`, or what
 * is written nests deeper than 180 levels.
 */
export function itemToJson(row: Uint8Array, selection: Selection = EVERYTHING): string {
  return new ItemReader(row).toJson(View.of(selection));
}

/** The columns of a table: where each row has their values. */
interface Columns {
  /** Names of top-level fields as rows store them, or paths that begin with one; as byte strings (view.ts). */
  readonly names: readonly string[];
  readonly arePaths: boolean;
  /** What of these values may be shown. The key is always shown whole. */
  readonly policy: View;
}

/**
 * The JSON texts of an item's values in these columns. Of several fields with the same name, or on the same path, the
 * first one counts. Undefined where the item has none. A path that leads to an array gives the array, and of its
 * elements what the rest of the path selects. Throws as itemToJson does.
 */
export function itemValues(row: Uint8Array, columns: Columns): (string | undefined)[] {
  return new ItemReader(row).values(columns);
}

class ItemReader {
  readonly #bytes: Buffer;

  constructor(row: Uint8Array) {
    this.#bytes = Buffer.from(row.buffer, row.byteOffset, row.byteLength);
    if (this.#bytes.readInt32LE(0) !== row.length) throw new Error('The document has another length');
  }

  toJson(view: View): string {
    const elements = elementsAt(this.#bytes, 0, 1);
    const keyName = elements.some((element) => this.#name(element) === 'id') ? '_id' : 'id';
    const key = this.#value(this.#keyOf(elements), 1, View.open);
    const others = elements.filter((element) => this.#name(element) !== '_id');
    return `{${[`"${keyName}":${key}`, ...this.#members(others, 1, view)].join()}}`;
  }

  values({ names, arePaths, policy }: Columns): (string | undefined)[] {
    const elements = elementsAt(this.#bytes, 0, 1);
    this.#keyOf(elements);
    return names.map((name) => {
      const found = arePaths ? this.#find(elements, name, policy, 1) : this.#field(elements, name, policy);
      return found && this.#value(...found);
    });
  }

  #keyOf(elements: readonly Element[]): Element {
    const key = elements.find((element) => this.#name(element) === '_id');
    if (!key) throw new Error('The document has no _id');
    return key;
  }

  /** The first field of this name. */
  #field(elements: readonly Element[], name: string, policy: View): Found | undefined {
    const element = elements.find((candidate) => this.#key(candidate) === name);
    const view = element && (name === '_id' ? View.open : this.#viewOf(element, policy));
    return element && view ? [element, 1, view] : undefined;
  }

  /** The first value on this path. */
  #find(elements: readonly Element[], path: string, policy: View, depth: number): Found | undefined {
    for (const element of elements) {
      const key = this.#key(element);
      if (key !== path && !path.startsWith(`${key}.`)) continue;
      const view = depth === 1 && key === '_id' ? View.open : this.#viewOf(element, policy);
      if (!view) continue;
      if (key === path) return [element, depth, view];
      const [type, , , at] = element;
      const rest = path.slice(key.length + 1);
      if (type === BSON_TYPE.array) return [element, depth, view.only(rest)];
      const below = type === BSON_TYPE.document ? elementsAt(this.#bytes, at, depth + 1) : [];
      const found = this.#find(below, rest, view, depth + 1);
      if (found) return found;
    }
    return undefined;
  }

  /** The members of an object that are shown. */
  #members(elements: readonly Element[], depth: number, view: View): string[] {
    return elements.flatMap((element) => {
      const below = this.#viewOf(element, view);
      return below ? [`${JSON.stringify(this.#name(element))}:${this.#value(element, depth, below)}`] : [];
    });
  }

  #array(at: number, depth: number, view: View): string {
    const elements = elementsAt(this.#bytes, at, depth);
    const shown = view.isPartial ? elements.filter(isNested) : elements;
    return `[${shown.map((element) => this.#value(element, depth, view)).join()}]`;
  }

  /** The view of an element's value. null when it is not shown. */
  #viewOf(element: Element, view: View): View | null {
    if (view === View.open) return view;
    const below = view.field(this.#key(element));
    return below?.isPartial && !isNested(element) ? null : below;
  }

  #name([, at, length]: Element): string {
    return this.#bytes.toString('utf8', at, at + length);
  }

  /** The name as a byte string, in which broken UTF-8 stays as it is. */
  #key([, at, length]: Element): string {
    return this.#bytes.toString('latin1', at, at + length);
  }

  #value([type, , , at, length]: Element, depth: number, view: View): string {
    const bytes = this.#bytes;
    switch (type) {
      case BSON_TYPE.double:
        return JSON.stringify(bytes.readDoubleLE(at));
      case BSON_TYPE.string:
        return JSON.stringify(bytes.toString('utf8', at + 4, at + length - 1));
      case BSON_TYPE.document:
        return `{${this.#members(elementsAt(bytes, at, depth + 1), depth + 1, view).join()}}`;
      case BSON_TYPE.array:
        return this.#array(at, depth + 1, view);
      case BSON_TYPE.binary:
        return `"${this.#binary(at, length)}"`;
      case BSON_TYPE.undefined:
      case BSON_TYPE.null:
        return 'null';
      case BSON_TYPE.objectId:
        return `"${bytes.toString('hex', at, at + 12)}"`;
      case BSON_TYPE.boolean:
        if (Number(bytes[at]) > 1) throw new Error('A boolean is neither 0 nor 1');
        return String(bytes[at] === 1);
      case BSON_TYPE.date:
        return date(bytes.readBigInt64LE(at));
      case BSON_TYPE.int32:
        return String(bytes.readInt32LE(at));
      case BSON_TYPE.int64:
        return String(bytes.readBigInt64LE(at));
      case BSON_TYPE.decimal128: {
        const text = new Decimal128(bytes.subarray(at, at + 16)).toString();
        return /\d/.test(text) ? text : 'null';
      }
      default:
        return JSON.stringify(extendedJson(type, bytes.subarray(at, at + length)));
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
}

/** The arguments of `#value`. */
type Found = readonly [element: Element, depth: number, view: View];

function date(milliseconds: bigint): string {
  const isFar = milliseconds > FARTHEST_DATE || milliseconds < -FARTHEST_DATE;
  if (isFar) return `{"$date":{"$numberLong":"${milliseconds}"}}`;
  return JSON.stringify(new Date(Number(milliseconds)));
}
