import { isUtf8 } from 'node:buffer';

const BYTE_ORDER_MARK = '\ufeff';

/** Decodes chunks of UTF-8 that may end inside a character. A byte order mark at the start is removed. */
export class Utf8Pieces {
  #rest: Buffer = Buffer.alloc(0);
  #begun = false;

  /**
   * Returns the complete characters so far. `valid` is false when some bytes are not UTF-8. Each of those
   * becomes U+FFFD.
   */
  push(chunk: Buffer): { readonly text: string; readonly valid: boolean } {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const end = bytes.length - unfinished(bytes);
    this.#rest = Buffer.from(bytes.subarray(end));
    const whole = bytes.subarray(0, end);
    const text = whole.toString('utf8');
    const marked = !this.#begun && text.startsWith(BYTE_ORDER_MARK);
    this.#begun ||= end > 0;
    return { text: marked ? text.slice(1) : text, valid: isUtf8(whole) };
  }
}

/** The number of bytes at the end that begin an incomplete character: 0 to 3. */
function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}
