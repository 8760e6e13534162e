import { BSON_TYPE } from '../../store/bson-types.ts';
import { MAX_DEPTH } from '../values.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';
import { MOST_NAMES, type FieldName, type FieldNames } from './field-names.ts';
import { writeJsonText } from './json-text.ts';
import { hexDigit, simpleNumber, utcTime } from './simple-values.ts';

const [QUOTE, COMMA, COLON, DOLLAR] = [0x22, 0x2c, 0x3a, 0x24];
const [BRACE, END_BRACE, BRACKET, END_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];
const [TAB, CR, SPACE] = [0x09, 0x0d, 0x20];
const [LETTER_T, LETTER_F, LETTER_N] = [0x74, 0x66, 0x6e];
const [TRUE, FALSE, NULL] = [latin('true'), latin('false'), latin('null')];
const [OID, DATE] = [latin('"$oid"'), latin('"$date"')];
const OID_DIGITS = 24;
const INDEXES = Array.from({ length: 1_000 }, (_, index) => nameBytes(String(index)));

/** A name before the first in an object. */
export type Owner = Pick<FieldName, 'inner'>;

/** Writes an element for the value at the cursor. False when the general way must read the line. */
export type WriteField = (name: FieldName) => boolean;

/**
 * A cursor in a line of JSON that writes values as BSON elements. Every method returns false (or null) where it is not
 * certain of the result; the line is then to be read the general way.
 */
export class JsonValues {
  readonly #writer: DocumentWriter;
  readonly #names: FieldNames;
  /** By depth and number of a name: the object that had it last. */
  readonly #seenIn = new Uint32Array((MAX_DEPTH + 1) * MOST_NAMES);
  #object = 0;
  #line: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(writer: DocumentWriter, names: FieldNames) {
    this.#writer = writer;
    this.#names = names;
  }

  /** Goes to the beginning of a line. */
  begin(line: Uint8Array): void {
    this.#line = line;
    this.#at = 0;
    this.#skipBlanks();
  }

  /** Whether nothing but blanks is left of the line. */
  get isAtEnd(): boolean {
    this.#skipBlanks();
    return this.#at === this.#line.length;
  }

  /** The members of the object at the cursor. `writeField` writes each, or else they are written as they are. */
  members(owner: Owner, depth: number, writeField?: WriteField): boolean {
    if (!this.#takes(BRACE)) return false;
    const object = this.#nextObject();
    let last: FieldName | null = null;
    this.#skipBlanks();
    if (this.#takes(END_BRACE)) return true;
    do {
      this.#skipBlanks();
      const name: FieldName | null = this.#name(last ? last.next : owner.inner);
      if (!name) return false;
      const place = depth * MOST_NAMES + name.number;
      if (this.#seenIn[place] === object) return false;
      this.#seenIn[place] = object;
      if (last) last.next = name;
      else owner.inner = name;
      last = name;
      if (!(writeField ? writeField(name) : this.value(name.bytes, name, depth + 1))) return false;
      this.#skipBlanks();
    } while (this.#takes(COMMA));
    return this.#takes(END_BRACE);
  }

  /** Writes the value at the cursor as an element of a name. `depth` is its depth when it is an object or an array. */
  value(name: Uint8Array, owner: Owner, depth: number): boolean {
    switch (this.#line[this.#at] ?? 0) {
      case QUOTE:
        return this.#string(name);
      case BRACE:
        return depth <= MAX_DEPTH && this.#document(name, owner, depth);
      case BRACKET:
        return depth <= MAX_DEPTH && this.#array(name, owner, depth);
      case LETTER_T:
        return this.#takesAll(TRUE) && this.#boolean(name, 1);
      case LETTER_F:
        return this.#takesAll(FALSE) && this.#boolean(name, 0);
      case LETTER_N:
        this.#writer.element(BSON_TYPE.null, name);
        return this.#takesAll(NULL);
      default:
        return this.#number(name);
    }
  }

  #string(name: Uint8Array): boolean {
    const writer = this.#writer;
    writer.element(BSON_TYPE.string, name);
    const start = writer.open();
    const end = writeJsonText(this.#line, this.#at + 1, writer);
    if (end < 0) return false;
    writer.closeText(start);
    this.#at = end;
    return true;
  }

  #boolean(name: Uint8Array, value: 0 | 1): boolean {
    const writer = this.#writer;
    writer.element(BSON_TYPE.boolean, name);
    writer.bytes[writer.at++] = value;
    return true;
  }

  /** A fraction with more digits keeps them when JavaScript shows it as it is written. */
  #number(name: Uint8Array): boolean {
    const line = this.#line;
    const start = this.#at;
    let end = start;
    while (isOfNumber(line[end] ?? 0)) end++;
    this.#at = end;
    let value = simpleNumber(line, start, end);
    if (Number.isNaN(value)) {
      const text = Buffer.from(line.buffer, line.byteOffset + start, end - start).toString('latin1');
      value = Number(text);
      if (Number.isInteger(value) || String(value) !== text) return false;
    }
    this.#writer.number(name, value);
    return true;
  }

  #document(name: Uint8Array, owner: Owner, depth: number): boolean {
    if (this.#line[this.#at + 1] === QUOTE && this.#line[this.#at + 2] === DOLLAR) return this.#typed(name);
    this.#writer.element(BSON_TYPE.document, name);
    const start = this.#writer.open();
    if (!this.members(owner, depth)) return false;
    this.#writer.close(start);
    return true;
  }

  #array(name: Uint8Array, owner: Owner, depth: number): boolean {
    this.#writer.element(BSON_TYPE.array, name);
    const start = this.#writer.open();
    this.#at++;
    this.#skipBlanks();
    if (!this.#takes(END_BRACKET)) {
      let index = 0;
      do {
        this.#skipBlanks();
        if (!this.value(INDEXES[index] ?? nameBytes(String(index)), owner, depth + 1)) return false;
        index++;
        this.#skipBlanks();
      } while (this.#takes(COMMA));
      if (!this.#takes(END_BRACKET)) return false;
    }
    this.#writer.close(start);
    return true;
  }

  /** `{"$oid": ...}` and `{"$date": ...}`, as mongoexport writes them. */
  #typed(name: Uint8Array): boolean {
    this.#at++;
    const isDate = this.#takesAll(DATE);
    if (!isDate && !this.#takesAll(OID)) return false;
    this.#skipBlanks();
    if (!this.#takes(COLON)) return false;
    this.#skipBlanks();
    if (!this.#takes(QUOTE) || !(isDate ? this.#date(name) : this.#objectId(name))) return false;
    this.#skipBlanks();
    return this.#takes(END_BRACE);
  }

  #date(name: Uint8Array): boolean {
    const end = this.#line.indexOf(QUOTE, this.#at);
    const time = utcTime(this.#line, this.#at, end);
    if (Number.isNaN(time)) return false;
    this.#writer.element(BSON_TYPE.date, name);
    this.#writer.milliseconds(time);
    this.#at = end + 1;
    return true;
  }

  #objectId(name: Uint8Array): boolean {
    const [line, writer] = [this.#line, this.#writer];
    writer.element(BSON_TYPE.objectId, name);
    const end = this.#at + OID_DIGITS;
    for (; this.#at < end; this.#at += 2) {
      const [high, low] = [hexDigit(line[this.#at] ?? 0), hexDigit(line[this.#at + 1] ?? 0)];
      if (high < 0 || low < 0) return false;
      writer.bytes[writer.at++] = high * 16 + low;
    }
    return this.#takes(QUOTE);
  }

  /** The name at the cursor. The cursor goes to its value. */
  #name(guess: FieldName | null): FieldName | null {
    if (!this.#takes(QUOTE)) return null;
    const name = this.#names.find(this.#line, this.#at, guess);
    if (!name) return null;
    this.#at += name.bytes.length; // its NUL counts for the quote
    this.#skipBlanks();
    if (!this.#takes(COLON)) return null;
    this.#skipBlanks();
    return name;
  }

  /** A number for an object. When they begin anew, an old one may look like a duplicate, which is only slower. */
  #nextObject(): number {
    this.#object = (this.#object + 1) >>> 0;
    return this.#object;
  }

  #skipBlanks(): void {
    const line = this.#line;
    for (let byte = line[this.#at]; byte === SPACE || byte === TAB || byte === CR;) byte = line[++this.#at];
  }

  #takes(byte: number): boolean {
    const is = this.#line[this.#at] === byte;
    if (is) this.#at++;
    return is;
  }

  #takesAll(bytes: Uint8Array): boolean {
    for (let n = 0; n < bytes.length; n++) if (this.#line[this.#at + n] !== bytes[n]) return false;
    this.#at += bytes.length;
    return true;
  }
}

/** Whether a character may be part of a number as JavaScript shows it. */
function isOfNumber(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2e || byte === 0x2d || byte === 0x2b || byte === 0x65;
}

function latin(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text));
}
