import { removedLine } from '../resources/changes/lines.ts';
import type { Bookmark } from '../store/bookmark.ts';
import { idTextAt, idTextOf, linesOf } from './id-text.ts';

/** A delta above these bytes is not made: it lies in memory until the edition is made, and chunks are not much more. */
const MOST_BYTES = 32 * 1024 * 1024;
const KEY_BYTES = 200;
const LF = 0x0a;

interface Change {
  readonly key: Bookmark;
  line: Buffer | null;
}

/** What changed since the edition before: the rows that were met, and the removals of all others. */
export class DeltaLines {
  readonly #changes = new Map<string, Change>();
  #bytes = 0;
  #isGivenUp = false;

  /** Notes that the row of a key changed. It is met again behind that, or was removed. */
  changed(key: Bookmark): void {
    if (this.#isGivenUp) return;
    const text = idTextOf(key);
    this.#bytes -= this.#changes.get(text)?.line?.length ?? -KEY_BYTES;
    this.#changes.set(text, { key, line: null });
    this.#giveUpIf(this.#bytes > MOST_BYTES);
  }

  /** Notes the rows of a chunk. */
  met(rows: Uint8Array): void {
    if (this.#changes.size === 0) return;
    const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.length);
    for (const at of linesOf(bytes)) {
      const change = this.#changes.get(idTextAt(bytes, at));
      if (change) this.#meet(change, bytes.subarray(at, bytes.indexOf(LF, at) + 1));
    }
  }

  /** The lines, removals first. Null: they are too many, or two rows show one id. */
  lines(): { readonly text: Buffer; readonly rows: number; readonly removed: number } | null {
    if (this.#isGivenUp) return null;
    const all = [...this.#changes.values()];
    const removed = all.filter(({ line }) => line === null).map(({ key }) => Buffer.from(removedLine(key)));
    const rows = all.flatMap(({ line }) => line ?? []);
    return { text: Buffer.concat([...removed, ...rows]), rows: rows.length, removed: removed.length };
  }

  #meet(change: Change, line: Buffer): void {
    if (change.line?.equals(line)) return;
    this.#giveUpIf(change.line !== null);
    change.line = Buffer.from(line);
    this.#bytes += line.length;
    this.#giveUpIf(this.#bytes > MOST_BYTES);
  }

  #giveUpIf(isTooMuch: boolean): void {
    if (!isTooMuch) return;
    this.#isGivenUp = true;
    this.#changes.clear();
  }
}
