import { shownSums, type LineSums } from '../../pipeline/checkpoints.ts';
import { crc32 } from '../../pipeline/crc32.ts';
import { crc32Combine } from '../../pipeline/crc32-combine.ts';
import type { FeedPlace } from '../../store/change-feed.ts';
import { checkpointLine } from './lines.ts';

/** The sums of the lines that a reader was sent. */
export interface FeedSums extends LineSums {
  readonly removed: number;
}

/** A place, and what a checkpoint there says of it. */
export interface Stop {
  readonly place: FeedPlace;
  /** A place to resume at. */
  readonly cursor: string;
  readonly isUpToDate: boolean;
}

/** A reader that was sent every line before a place, and the checkpoint there. */
export interface ReaderPosition {
  readonly at: Stop;
  readonly sums: FeedSums;
}

/** Lines without their sums as bytes. */
interface Lines extends Pick<FeedSums, 'rows' | 'removed'> {
  readonly text: Uint8Array;
}

/** Lines that followers of one question get, and where these are behind them. */
export class Page {
  readonly at: Stop;
  /** The number of bytes, as the response carries them. */
  readonly length: number;
  readonly #sums: FeedSums;
  readonly #framed: (lines: Uint8Array) => Uint8Array;
  /** The text, and memory for the checkpoint behind it: a copy of the text for each reader would all be garbage. */
  #bytes: Buffer;

  /** `framed`: see Question. */
  constructor(at: Stop, { rows, removed, text }: Lines, framed: (lines: Uint8Array) => Uint8Array) {
    this.at = at;
    this.#sums = { rows, removed, bytes: text.length, crc: crc32(text) };
    this.#framed = framed;
    this.#bytes = Buffer.from(framed(text));
    this.length = this.#bytes.length;
  }

  /** The sums of a reader with this page behind what it was sent before. */
  sumsAfter({ rows, removed, bytes, crc }: FeedSums): FeedSums {
    const own = this.#sums;
    return {
      rows: rows + own.rows,
      removed: removed + own.removed,
      bytes: bytes + own.bytes,
      crc: own.bytes > 0 ? crc32Combine(crc, own.crc, own.bytes) : crc,
    };
  }

  /** The lines and a checkpoint with these sums, in memory that the next call uses again. */
  textWith(sums: FeedSums): Uint8Array {
    const checkpoint = checkpointLine({ ...this.at, ...shownSums(sums), removed: sums.removed });
    const line = this.#framed(Buffer.from(checkpoint));
    const end = this.length + line.length;
    if (this.#bytes.length < end)
      this.#bytes = Buffer.concat([this.#bytes.subarray(0, this.length)], 2 * end);
    this.#bytes.set(line, this.length);
    return this.#bytes.subarray(0, end);
  }
}
