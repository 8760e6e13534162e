import { BSON_TYPE } from '../store/bson-types.ts';
import { quoted } from '../terminal/text.ts';
import { indexName, type DocumentWriter } from './document-writer.ts';
import { writeCommonType, writeExtended } from './extended-json.ts';
import { FieldNames, isAt, type FieldName } from './field-names.ts';
import { JsonCursor } from './json-cursor.ts';
import { writeJsonText } from './json-text.ts';
import { MAX_DEPTH } from './names.ts';
import { jsonNumber } from './numbers.ts';
import { BadRow } from './row.ts';
import { simpleNumber } from './simple-values.ts';

const [QUOTE, COMMA, COLON, DOLLAR] = [0x22, 0x2c, 0x3a, 0x24];
const [BRACE, END_BRACE, BRACKET, END_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];
const [LETTER_T, LETTER_F, LETTER_N] = [0x74, 0x66, 0x6e];
const [TRUE, FALSE, NULL] = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')];
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A name before the first in an object. */
export type Owner = Pick<FieldName, 'inner'>;

/** What was declared for a field. */
export interface Declared {
  /** Gives the element that was just written, at an offset, the declared kind. null: only fields inside have one. */
  readonly fit: ((writer: DocumentWriter, name: Uint8Array, offset: number) => void) | null;
  /** Whether an array is one value of the kind. Otherwise each of its elements is. */
  readonly isWhole: boolean;
  /** What was declared for the fields inside, by their names. */
  readonly inner: ReadonlyMap<string, Declared>;
}

/**
 * Writes the values of a JSON text as BSON elements, strictly as RFC 8259 has it. The text must be UTF-8.
 *
 * Its methods throw NotJson for any other text, and BadRow for what JSON allows and an item may not have: a name twice
 * in one object, names with `$`, NUL or `__proto__`, more than 32 levels, half of a surrogate pair, numbers that no BSON
 * number holds, Extended JSON that is none.
 */
export class JsonReader extends JsonCursor {
  readonly #writer: DocumentWriter;
  readonly #names = new FieldNames();
  #object = 0;

  constructor(writer: DocumentWriter) {
    super();
    this.#writer = writer;
  }

  override begin(bytes: Buffer): void {
    this.#names.prune();
    super.begin(bytes);
  }

  /** Whether an object begins at the cursor. */
  get isAtObject(): boolean {
    return this.bytes[this.at] === BRACE;
  }

  /**
   * Reads the members of the object at the cursor. `write` writes each; without it they are written as they are, and the
   * first name may begin with $. Returns whether it does.
   */
  members(
    owner: Owner,
    depth: number,
    declared: Declared | null,
    write: ((name: FieldName) => void) | null = null,
  ): boolean {
    this.at++;
    const object = ++this.#object;
    let last: FieldName | null = null;
    let isTyped = false;
    this.skipBlanks();
    if (this.takes(END_BRACE)) return isTyped;
    do {
      this.skipBlanks();
      const name: FieldName = this.#name(last ? last.next : owner.inner);
      if (name.seenIn[depth] === object)
        throw new BadRow(`the name ${quoted(name.text)} appears twice in one object`);
      name.seenIn[depth] = object;
      if (name.fault !== null) {
        if (last === null && write === null) isTyped = name.text.startsWith('$');
        if (!isTyped || !name.text.startsWith('$'))
          throw new BadRow(`the field name ${quoted(name.text)} ${name.fault}`);
      }
      if (name.isPlain && last) last.next = name;
      else if (name.isPlain) owner.inner = name;
      last = name;
      if (write) write(name);
      else this.value(name.bytes, name, depth + 1, declared && (declared.inner.get(name.text) ?? null));
      this.skipBlanks();
    } while (this.takes(COMMA));
    if (!this.takes(END_BRACE)) this.fault('a comma or }');
    return isTyped;
  }

  /** Writes the value at the cursor as an element of a name. `depth` is its depth when it is an object or an array. */
  value(name: Uint8Array, owner: Owner, depth: number, declared: Declared | null): void {
    const byte = this.bytes[this.at] ?? 0;
    if (declared?.fit && (byte !== BRACKET || declared.isWhole)) {
      const { offset } = this.#writer;
      this.value(name, owner, depth, null);
      declared.fit(this.#writer, name, offset);
      return;
    }
    switch (byte) {
      case QUOTE: {
        this.#string(name);
        return;
      }
      case BRACE: {
        this.#document(name, owner, depth, declared);
        return;
      }
      case BRACKET: {
        this.#array(name, owner, depth, declared);
        return;
      }
      case LETTER_T: {
        this.#boolean(name, TRUE, 1);
        return;
      }
      case LETTER_F: {
        this.#boolean(name, FALSE, 0);
        return;
      }
      case LETTER_N:
        this.word(NULL);
        {
          this.#writer.element(BSON_TYPE.null, name);
          return;
        }
      default: {
        this.#number(name);
        return;
      }
    }
  }

  #string(name: Uint8Array): void {
    const writer = this.#writer;
    writer.element(BSON_TYPE.string, name);
    const start = writer.open();
    this.#text();
    writer.closeText(start);
  }

  /** Writes the text of the string at the cursor. */
  #text(): void {
    const end = writeJsonText(this.bytes, this.at + 1, this.#writer);
    if (end < 0) this.fault('a character of a string, or its quote', ~end);
    this.at = end;
  }

  #boolean(name: Uint8Array, word: Uint8Array, value: 0 | 1): void {
    this.word(word);
    this.#writer.element(BSON_TYPE.boolean, name);
    this.#writer.bytes[this.#writer.at++] = value;
  }

  #number(name: Uint8Array): void {
    const bytes = this.bytes;
    const start = this.at;
    let end = start;
    while (isOfNumber(bytes[end] ?? 0)) end++;
    const simple = simpleNumber(bytes, start, end);
    if (Number.isNaN(simple)) {
      const text = bytes.toString('latin1', start, end);
      if (!NUMBER.test(text)) this.fault(text === '' ? 'a value' : 'a number as JSON writes it');
      this.#writer.value(name, jsonNumber(text));
    } else {
      this.#writer.number(name, simple);
    }
    this.at = end;
  }

  #document(name: Uint8Array, owner: Owner, depth: number, declared: Declared | null): void {
    this.#checkDepth(depth);
    const [writer, bytes, from] = [this.#writer, this.bytes, this.at];
    const { offset } = writer;
    if (bytes[from + 1] === QUOTE && bytes[from + 2] === DOLLAR) {
      this.at = writeCommonType(writer, name, bytes, from);
      if (this.at > from) return;
      writer.rewind(offset);
    }
    writer.element(BSON_TYPE.document, name);
    const start = writer.open();
    const isTyped = this.members(owner, depth, declared);
    writer.close(start);
    if (isTyped) writeExtended(writer, name, offset, () => bytes.toString('utf8', from, this.at));
  }

  #array(name: Uint8Array, owner: Owner, depth: number, declared: Declared | null): void {
    this.#checkDepth(depth);
    this.#writer.element(BSON_TYPE.array, name);
    const start = this.#writer.open();
    this.at++;
    this.skipBlanks();
    if (!this.takes(END_BRACKET)) {
      let index = 0;
      do {
        this.skipBlanks();
        this.value(indexName(index), owner, depth + 1, declared);
        index++;
        this.skipBlanks();
      } while (this.takes(COMMA));
      if (!this.takes(END_BRACKET)) this.fault('a comma or ]');
    }
    this.#writer.close(start);
  }

  #checkDepth(depth: number): void {
    if (depth > MAX_DEPTH) throw new BadRow(`the value is nested deeper than ${MAX_DEPTH} levels`);
  }

  /** The name at the cursor, which goes to its value. */
  #name(guess: FieldName | null): FieldName {
    const bytes = this.bytes;
    if (bytes[this.at] !== QUOTE) this.fault('a name in quotes');
    let name = guess;
    if (name && isAt(name.bytes, bytes, this.at + 1))
      this.at += name.bytes.length + 1; // its NUL counts for a quote
    else name = this.#otherName();
    this.skipBlanks();
    if (!this.takes(COLON)) this.fault('a colon');
    this.skipBlanks();
    return name;
  }

  #otherName(): FieldName {
    const writer = this.#writer;
    const { offset } = writer;
    this.#text();
    const length = writer.offset - offset;
    const name = this.#names.of(Buffer.from(writer.bytes.buffer, writer.at - length, length));
    writer.rewind(offset);
    return name;
  }
}

/** Whether a character may be part of a number. */
function isOfNumber(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2e ||
    byte === 0x2d ||
    byte === 0x2b ||
    (byte | 0x20) === 0x65
  );
}
