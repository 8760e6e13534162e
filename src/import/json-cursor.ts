import { quoted } from '../terminal/text.ts';
import { NotJson } from './row.ts';

const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20];

/** A place in a JSON text. Its methods throw NotJson, which names the place, where the text is not as expected. */
export class JsonCursor {
  protected bytes: Buffer = Buffer.alloc(0);
  /** The index of the next byte. */
  at = 0;

  /** Goes to the beginning of a text. */
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

  protected skipBlanks(): void {
    const { bytes } = this;
    for (let byte = bytes[this.at]; isBlank(byte);) byte = bytes[++this.at];
  }

  /** Whether the next byte is this one, which is then passed. */
  protected takes(byte: number): boolean {
    const is = this.bytes[this.at] === byte;
    if (is) this.at++;
    return is;
  }

  /** Expects a word such as `null`. */
  protected word(word: Uint8Array): void {
    for (const byte of word) if (!this.takes(byte)) this.fault('a value');
  }

  protected fault(expected: string, at = this.at): never {
    const before = this.bytes.toString('utf8', 0, at);
    const [found] = this.bytes.toString('utf8', at, at + 4);
    const got = found === undefined ? 'its end' : quoted(found);
    throw new NotJson(`at character ${before.length + 1}: expected ${expected}, got ${got}`);
  }
}

/** Whether a byte is one of the four blanks of JSON. */
export function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === CR || byte === LF;
}
