import { isUtf8 } from 'node:buffer';

const BYTE_ORDER_MARK = '\ufeff';

/** Text of chunks of UTF-8 that may end inside a character; a byte order mark at the start is left out. */
export class Utf8Pieces {
  #rest: Buffer = Buffer.alloc(0);
  #begun = false;

  /** The whole characters so far. Not `valid`: bytes that are no UTF-8 came, each stands as U+FFFD. */
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

/** How many bytes at the end are the beginning of a character: 0 to 3. */
function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}
