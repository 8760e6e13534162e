import { getOrMake } from '../base/get-or-make.ts';
import { BSON_TYPE } from '../store/values/bson-types.ts';
import { JSON_NUMBER } from '../store/values/value-texts.ts';
import { quoted } from '../terminal/text.ts';
import { writeCommonType } from './common-types.ts';
import { nameBytes, type DocumentWriter } from './document-writer.ts';
import { writeExtended } from './extended-json.ts';
import { MAX_DEPTH, nameFault } from './fields.ts';
import { JsonCursor } from './json-cursor.ts';
import { jsonNumber, simpleNumber } from './numbers.ts';
import { BadRow } from './row.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const DOLLAR = 0x24;
const LETTER_F = 0x66;
const LETTER_T = 0x74;
const BRACE = 0x7b;
const END_BRACE = 0x7d;
const BRACKET = 0x5b;
const END_BRACKET = 0x5d;
const WORDS = [
  { word: Buffer.from('true'), type: BSON_TYPE.boolean, value: Uint8Array.of(1) },
  { word: Buffer.from('false'), type: BSON_TYPE.boolean, value: Uint8Array.of(0) },
  { word: Buffer.from('null'), type: BSON_TYPE.null, value: new Uint8Array() },
];
/** A name that JSON writes in another way, or in several. */
const ODD_NAME = /["\\\p{Cc}]/u;
/** The most names that are kept from row to row. */
const MOST_NAMES = 4_096;
/** The names of the elements of arrays. */
const INDEXES = Array.from({ length: 1_000 }, (_, index) => nameBytes(String(index)));
const NO_NAME = nameBytes('');

/** A field name that some row had. */
export interface FieldName {
  readonly text: string;
  /** The name in UTF-8, and a NUL. */
  readonly bytes: Uint8Array;
  /** Why no field may have this name. null: one may. */
  readonly fault: string | null;
  /** Whether JSON writes the name as it is, without escapes. */
  readonly isPlain: boolean;
  /** By depth: the number of the object that had the name last. */
  readonly seenIn: number[];
  /** What a top-level field of this name becomes, once it is known: see jsonRows. */
  becomes: FieldRename | null;
}

export interface FieldRename {
  /** The new name. null: another field takes its place. */
  readonly bytes: Uint8Array | null;
  readonly isKey: boolean;
  /** Whether it is the key where the row has no other. */
  readonly isSpare: boolean;
}

export interface FieldDeclaration {
  /** Writes a text as an element of the declared kind. null: only fields inside have one. */
  write: ((writer: DocumentWriter, name: Uint8Array, text: string) => void) | null;
  /** Whether some row has the field. */
  isSeen: boolean;
  /** What was declared for the fields inside, by their names. */
  readonly inner: Map<string, FieldDeclaration>;
}

/**
 * Writes the values of a JSON text as BSON elements, strictly as RFC 8259 has it. The text must be UTF-8.
 *
 * Its methods throw NotJson for any other text, and BadRow for what JSON allows and an item may not have: names
 * with `$`, NUL or `__proto__`, more than 32 levels, half of a surrogate pair, numbers that no BSON
 * number holds, Extended JSON that is none.
 */
export class JsonReader extends JsonCursor {
  /** The names of the rows so far, by their bytes as Latin-1. */
  readonly #names = new Map<string, FieldName>();
  /** The names of the row before, in their order: mostly this row has the same. And how many this row had so far. */
  #expected: FieldName[] = [];
  #place = 0;
  #object = 0;
  /** Whether an object of the text has a name twice: see withoutTwice. */
  hasTwice = false;

  override begin(bytes: Buffer): void {
    if (Math.max(this.#names.size, this.#expected.length) > MOST_NAMES) {
      this.#names.clear();
      this.#expected = [];
    }
    this.#place = 0;
    this.hasTwice = false;
    super.begin(bytes);
  }

  /**
   * Reads the members of the object at the cursor. `write` writes each; without it they are written as they are, and the
   * first name may begin with $. Returns whether it does.
   */
  members(depth: number, declared: FieldDeclaration | null, write?: (name: FieldName) => void): boolean {
    this.at++;
    const object = ++this.#object;
    let isFirst = true;
    let isTyped = false;
    if (this.takes(END_BRACE)) return false;
    do {
      const name = this.#name();
      if (name.seenIn[depth] === object) this.hasTwice = true;
      name.seenIn[depth] = object;
      if (name.fault !== null) {
        const isType = name.text.startsWith('$');
        if (isFirst && !write) isTyped = isType;
        if (!(isTyped && isType)) throw new BadRow(`the field name ${quoted(name.text)} ${name.fault}`);
      }
      isFirst = false;
      if (write) write(name);
      else this.value(name.bytes, depth + 1, declared && (declared.inner.get(name.text) ?? null));
    } while (this.takes(COMMA));
    if (!this.takes(END_BRACE)) this.fault('a comma or }');
    return isTyped;
  }

  /** Writes the value at the cursor as an element of a name. `depth` is its depth when it is an object or an array. */
  value(name: Uint8Array, depth: number, declared: FieldDeclaration | null): void {
    const byte = this.bytes[this.at] ?? 0;
    if (declared?.write) {
      declared.isSeen = true;
      if (byte === QUOTE || isOfNumber(byte) || byte === LETTER_T || byte === LETTER_F) {
        declared.write(this.writer, name, this.#scalarText());
        return;
      }
    }
    if (byte === QUOTE) {
      const start = this.writer.openText(name);
      this.text();
      this.writer.closeText(start);
    } else if (byte === BRACE) this.#document(name, depth, declared);
    else if (byte === BRACKET) this.#array(name, depth, declared);
    else if (isOfNumber(byte)) this.#number(name);
    else this.#word(name);
  }

  /** Reads a string, a number, true or false as text. */
  #scalarText(): string {
    const writer = this.writer;
    const from = this.at;
    const { offset } = writer;
    this.value(NO_NAME, 0, null);
    const text =
      this.bytes[from] === QUOTE
        ? Buffer.from(writer.bytesAt(offset).subarray(4, -1)).toString()
        : this.bytes.toString('latin1', from, this.at);
    writer.rewind(offset);
    return text;
  }

  #word(name: Uint8Array): void {
    const first = this.bytes[this.at];
    for (const { word, type, value } of WORDS) {
      if (word[0] !== first) continue;
      for (const byte of word) if (this.bytes[this.at++] !== byte) this.fault('a value', this.at - 1);
      this.writer.element(type, name);
      this.writer.put(value);
      return;
    }
    this.fault('a value');
  }

  #number(name: Uint8Array): void {
    const bytes = this.bytes;
    const start = this.at;
    let end = start;
    while (isOfNumber(bytes[end] ?? 0)) end++;
    const simple = simpleNumber(bytes, start, end);
    if (Number.isNaN(simple)) {
      const text = bytes.toString('latin1', start, end);
      if (!JSON_NUMBER.test(text)) this.fault('a number as JSON writes it');
      this.writer.value(name, jsonNumber(text));
    } else this.writer.number(name, simple);
    this.at = end;
  }

  #document(name: Uint8Array, depth: number, declared: FieldDeclaration | null): void {
    this.#checkDepth(depth);
    const writer = this.writer;
    const bytes = this.bytes;
    const from = this.at;
    const { offset } = writer;
    if (bytes[from + 1] === QUOTE && bytes[from + 2] === DOLLAR) {
      this.at = writeCommonType(writer, name, bytes, from);
      if (this.at > from) return;
      writer.rewind(offset);
    }
    writer.element(BSON_TYPE.document, name);
    const start = writer.open();
    const isTyped = this.members(depth, declared);
    writer.close(start);
    if (isTyped) writeExtended(writer, name, offset, () => bytes.toString('utf8', from, this.at));
  }

  #array(name: Uint8Array, depth: number, declared: FieldDeclaration | null): void {
    this.#checkDepth(depth);
    this.writer.element(BSON_TYPE.array, name);
    const start = this.writer.open();
    this.at++;
    if (!this.takes(END_BRACKET)) {
      let index = 0;
      do {
        this.skipBlanks();
        this.value(INDEXES[index] ?? nameBytes(String(index)), depth + 1, declared);
        index++;
      } while (this.takes(COMMA));
      if (!this.takes(END_BRACKET)) this.fault('a comma or ]');
    }
    this.writer.close(start);
  }

  #checkDepth(depth: number): void {
    if (depth > MAX_DEPTH) throw new BadRow(`the value is nested deeper than ${MAX_DEPTH} levels`);
  }

  /** The next name. The cursor goes to its value. */
  #name(): FieldName {
    this.skipBlanks();
    if (this.bytes[this.at] !== QUOTE) this.fault('a name in quotes');
    const place = this.#place++;
    let name = this.#expected[place];
    if (name?.isPlain && this.#isAt(name.bytes))
      this.at += name.bytes.length + 1; // its NUL counts for a quote
    else this.#expected[place] = name = this.#otherName();
    if (!this.takes(COLON)) this.fault('a colon');
    this.skipBlanks();
    return name;
  }

  /** Whether a name with its quotes is at the cursor. */
  #isAt(name: Uint8Array): boolean {
    const bytes = this.bytes;
    const from = this.at + 1;
    const last = name.length - 1;
    for (let n = 0; n < last; n++) if (name[n] !== bytes[from + n]) return false;
    return bytes[from + last] === QUOTE;
  }

  #otherName(): FieldName {
    const writer = this.writer;
    const { offset } = writer;
    this.text();
    const bytes = Buffer.from(
      writer.bytes.buffer,
      writer.at - (writer.offset - offset),
      writer.offset - offset,
    );
    writer.rewind(offset);
    const text = bytes.toString();
    return getOrMake(this.#names, bytes.toString('latin1'), () => ({
      text,
      bytes: nameBytes(text),
      fault: nameFault(text),
      isPlain: !ODD_NAME.test(text),
      seenIn: [],
      becomes: null,
    }));
  }
}

function isOfNumber(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2e ||
    byte === 0x2d ||
    byte === 0x2b ||
    (byte | 0x20) === 0x65
  );
}
