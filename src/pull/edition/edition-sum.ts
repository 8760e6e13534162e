import type { ChunkEntry, EditionHead } from '../../base/edition/head.ts';
import { nameText } from '../../base/edition/names.ts';
import { crc32Combine } from '../../pipeline/crc32-combine.ts';
import { Refusal } from '../retry.ts';

/** A hash that takes text in pieces. */
interface NameHash {
  update(text: string): unknown;
  /** In hexadecimal digits. */
  digest(): string;
}

type Sums = Pick<ChunkEntry, 'name' | 'rows' | 'bytes' | 'crc32'>;

/** What chunks in their order are together: the name of their edition, and the sums of their rows. */
export class EditionSum {
  readonly #hash: NameHash;
  rows = 0;
  bytes = 0;
  crc32 = 0;

  constructor(hash: NameHash) {
    this.#hash = hash;
  }

  add({ name, rows, bytes, crc32 }: Sums): void {
    this.#hash.update(nameText([name]));
    this.rows += rows;
    this.bytes += bytes;
    this.crc32 = crc32Combine(this.crc32, parseInt(crc32, 16), bytes);
  }

  /** Called once, behind the last chunk. Throws Refusal when the chunks are not those of the edition. */
  check(head: EditionHead): void {
    const crc32 = this.crc32.toString(16).padStart(8, '0');
    const found = { edition: this.#hash.digest(), rows: this.rows, bytes: this.bytes, crc32 };
    const names = ['edition', 'rows', 'bytes', 'crc32'] as const;
    const wrong = names.find((name) => found[name] !== head[name]);
    if (wrong !== undefined)
      throw new Refusal(
        `the chunks are not the edition that the head names: ${wrong} is ${found[wrong]}, not ${head[wrong]}`,
      );
  }
}
