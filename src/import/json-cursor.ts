import { quoted } from '../terminal/text.ts';
import type { DocumentWriter } from './document-writer.ts';
import { BadRow, NotJson } from './row.ts';

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
/** What stands for the byte behind the last one: it is no blank. */
const END = 0x7f;
/** The character that another one means behind a backslash, by its code. 0: it begins the code of one, or is no escape. */
const MEANT = new Uint8Array(256);
for (const [n, escape] of ['"', '\\', '/', 'b', 'f', 'n', 'r', 't'].entries())
  MEANT[escape.charCodeAt(0)] = '"\\/\b\f\n\r\t'.charCodeAt(n);
/** An escape, or what is before the next one. One expression for a whole text would need a stack as long as the text. */
const SOUND = /[^\\]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const OF_TEXT = 'a character of a string, or its quote';
const UTF8 = new TextEncoder();

/** A place in the UTF-8 of a JSON text: what every JSON has, which is blanks, signs and strings. Its methods throw NotJson. */
export class JsonCursor {
  /** Takes the texts of strings. */
  protected readonly writer: DocumentWriter;
  protected bytes: Buffer = Buffer.alloc(0);
  /** The index of the next byte. */
  protected at = 0;

  constructor(writer: DocumentWriter) {
    this.writer = writer;
  }

  begin(bytes: Buffer): void {
    this.bytes = bytes;
    this.at = 0;
    this.skipBlanks();
  }

  /** Expects nothing but blanks. */
  end(): void {
    this.skipBlanks();
    if (this.at < this.bytes.length) this.fault('nothing more');
  }

  /** Whether an object begins at the cursor. */
  get isAtObject(): boolean {
    return this.bytes[this.at] === BRACE;
  }

  /** Writes the text of the string at the cursor in UTF-8. Mostly it has no escapes, and is written while its end is looked for. */
  protected text(): void {
    const row = this.bytes;
    const from = this.at + 1;
    const writer = this.writer;
    writer.room(row.length - from);
    const { bytes } = writer;
    let { at } = writer;
    let end = from;
    let byte = row[end] ?? 0;
    while (byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH) {
      bytes[at++] = byte;
      byte = row[++end] ?? 0;
    }
    if (byte !== QUOTE) {
      this.#textWithEscapes(from, end);
      return;
    }
    writer.at = at;
    this.at = end + 1;
  }

  /** The same. `end`: where the first backslash is, or a character that may not be there. */
  #textWithEscapes(from: number, end: number): void {
    const row = this.bytes;
    for (let byte = row[end] ?? 0; byte !== QUOTE; byte = row[++end] ?? 0) {
      if (byte < SPACE) {
        this.#unescaped(from, end); // a fault before it comes first
        this.fault(OF_TEXT, end);
      }
      if (byte === BACKSLASH) end++;
    }
    if (!this.#putMeant(from, end)) this.writer.put(UTF8.encode(this.#unescaped(from, end)));
    this.at = end + 1;
  }

  /** Writes a part of a string whose escapes are of one character, without the detour of a code. False: others are. */
  #putMeant(from: number, end: number): boolean {
    const row = this.bytes;
    const writer = this.writer;
    writer.room(end - from);
    let { at } = writer;
    for (let n = from; n < end; n++) {
      let byte = row[n] ?? 0;
      if (byte === BACKSLASH) byte = MEANT[row[++n] ?? 0] ?? 0;
      if (byte === 0) return false;
      writer.bytes[at++] = byte;
    }
    writer.at = at;
    return true;
  }

  /** The text of a part of a string that has escapes. */
  #unescaped(from: number, end: number): string {
    const raw = this.bytes.toString('utf8', from, end);
    const at = wrongEscape(raw);
    if (at < raw.length) {
      const escape = raw[at + 1] === 'u' ? 2 : 1;
      this.fault(OF_TEXT, from + Buffer.byteLength(raw.slice(0, at)) + escape);
    }
    const text = JSON.parse(`"${raw}"`) as string;
    if (/\p{Surrogate}/u.test(text)) throw new BadRow('a text contains half of a surrogate pair');
    return text;
  }

  protected skipBlanks(): void {
    const bytes = this.bytes;
    if ((bytes[this.at] ?? END) > SPACE) return; // mostly
    for (let byte = bytes[this.at]; isBlank(byte);) byte = bytes[++this.at];
  }

  /** Whether the next byte that is no blank is this one, which is then passed. */
  protected takes(byte: number): boolean {
    if (this.bytes[this.at] !== byte) {
      this.skipBlanks();
      if (this.bytes[this.at] !== byte) return false;
    }
    this.at++;
    return true;
  }

  protected fault(expected: string, at = this.at): never {
    const before = this.bytes.toString('utf8', 0, at);
    const [found] = this.bytes.toString('utf8', at, at + 4);
    const got = found === undefined ? 'its end' : quoted(found);
    throw new NotJson(`at character ${before.length + 1}: expected ${expected}, got ${got}`);
  }
}

/** The index of the first backslash that begins no escape. The length of the text when there is none. */
function wrongEscape(raw: string): number {
  let at = 0;
  for (SOUND.lastIndex = 0; SOUND.test(raw);) at = SOUND.lastIndex;
  return at;
}

/** Whether a byte is one of the four blanks of JSON. */
export function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === CR || byte === LF;
}
