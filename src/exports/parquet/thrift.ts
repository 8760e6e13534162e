/**
 * Structs in Thrift's compact protocol, in which Parquet writes its footers
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). They are read without their
 * definitions, so that members that nobody here knows are written back as they were.
 */

/** The types of members. A boolean is in its type. */
export const THRIFT = {
  yes: 1,
  no: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  struct: 12,
};

/** A value: numbers as `number`; a byte, a double and a binary as `bytes`. `raw` is the encoding of a struct. */
export type Value =
  | { readonly type: number }
  | { readonly type: number; readonly number: bigint }
  | { readonly type: number; readonly bytes: Uint8Array }
  | { readonly type: number; readonly of: number; readonly values: readonly Value[] }
  | { readonly type: number; readonly members: Struct }
  | { readonly type: number; readonly raw: Uint8Array };

/** The members by their ids. */
export type Struct = ReadonlyMap<number, Value>;

const LONG_FORM = 15;
const DOUBLE_BYTES = 8;

/** Reads a struct. Throws RangeError when the bytes end before it does, or have a type that Parquet does not use. */
export function readStruct(bytes: Uint8Array): Struct {
  return new Reader(bytes).struct();
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(): Struct {
    const members = new Map<number, Value>();
    let id = 0;
    for (let head = this.#byte(); head !== 0; head = this.#byte()) {
      const step = head >> 4;
      id = step === 0 ? Number(this.#signed()) : id + step;
      const type = head & 15;
      const isBoolean = type === THRIFT.yes || type === THRIFT.no;
      members.set(id, isBoolean ? { type } : this.#value(type));
    }
    return members;
  }

  #value(type: number): Value {
    switch (type) {
      case THRIFT.yes:
      case THRIFT.no:
        return { type: this.#byte() }; // in a list, each has a byte of its own
      case THRIFT.byte:
        return { type, bytes: this.#take(1) };
      case THRIFT.i16:
      case THRIFT.i32:
      case THRIFT.i64:
        return { type, number: this.#signed() };
      case THRIFT.double:
        return { type, bytes: this.#take(DOUBLE_BYTES) };
      case THRIFT.binary:
        return { type, bytes: this.#take(Number(this.#unsigned())) };
      case THRIFT.list:
        return this.#list();
      case THRIFT.struct:
        return { type, members: this.struct() };
      default:
        throw new RangeError(`no member of a footer of Parquet has the type ${type}`);
    }
  }

  #list(): Value {
    const head = this.#byte();
    const of = head & 15;
    const length = head >> 4 === LONG_FORM ? Number(this.#unsigned()) : head >> 4;
    return { type: THRIFT.list, of, values: Array.from({ length }, () => this.#value(of)) };
  }

  #signed(): bigint {
    const folded = this.#unsigned();
    return (folded >> 1n) ^ -(folded & 1n);
  }

  #unsigned(): bigint {
    for (let [value, shift] = [0n, 0n]; ; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  #byte(): number {
    return this.#take(1)[0] ?? 0;
  }

  #take(length: number): Uint8Array {
    const taken = this.#bytes.subarray(this.#at, (this.#at += length));
    if (taken.length < length) throw new RangeError('a footer of Parquet is cut');
    return taken;
  }
}

/** The encoding of a struct. */
export function writeStruct(members: Struct): Buffer {
  const pieces: Uint8Array[] = [];
  addStruct(pieces, members);
  return Buffer.concat(pieces);
}

function addStruct(pieces: Uint8Array[], members: Struct): void {
  let last = 0;
  for (const [id, value] of [...members].sort(([a], [b]) => a - b)) {
    const step = id - last;
    if (step <= 15) pieces.push(Uint8Array.of((step << 4) | value.type));
    else pieces.push(Uint8Array.of(value.type), signed(BigInt(id)));
    last = id;
    addValue(pieces, value);
  }
  pieces.push(Uint8Array.of(0));
}

function addValue(pieces: Uint8Array[], value: Value): void {
  if ('number' in value) pieces.push(signed(value.number));
  else if ('raw' in value) pieces.push(value.raw);
  else if ('members' in value) addStruct(pieces, value.members);
  else if ('values' in value) addList(pieces, value.of, value.values);
  else if ('bytes' in value) {
    if (value.type === THRIFT.binary) pieces.push(unsigned(BigInt(value.bytes.length)));
    pieces.push(value.bytes);
  }
}

function addList(pieces: Uint8Array[], of: number, values: readonly Value[]): void {
  if (values.length < LONG_FORM) pieces.push(Uint8Array.of((values.length << 4) | of));
  else pieces.push(Uint8Array.of((LONG_FORM << 4) | of), unsigned(BigInt(values.length)));
  for (const value of values) {
    if (value.type === THRIFT.yes || value.type === THRIFT.no) pieces.push(Uint8Array.of(value.type));
    else addValue(pieces, value);
  }
}

function signed(number: bigint): Uint8Array {
  return unsigned(BigInt.asUintN(64, (number << 1n) ^ (number >> 63n)));
}

function unsigned(number: bigint): Uint8Array {
  const bytes: number[] = [];
  for (; number > 127n; number >>= 7n) bytes.push(Number(number & 127n) | 128);
  return Uint8Array.from([...bytes, Number(number)]);
}
