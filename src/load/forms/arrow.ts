import { ByteBuffer } from 'flatbuffers';
import { Mismatch } from '../../pull/retry.ts';
import { crc32 } from '../../pipeline/crc32.ts';
import type { RowReading } from './reading.ts';

/** What a record batch says of all up to and including itself. */
interface Tally {
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
}

const PREFIX_BYTES = 8;
const CONTINUATION = 0xffffffff;
const RECORD_BATCH = 3;
const MOST_HEAD_BYTES = 64 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Counts the rows of an Arrow IPC stream, and compares them, and the bytes and CRC-32 of their bodies, with what each
 * record batch says in its metadata. The members of the heads are those of Message.fbs.
 */
export class ArrowRows implements RowReading {
  #state: 'prefix' | 'head' | 'body' | 'ended' = 'prefix';
  /** The part of a prefix or head that has come. */
  #begun = NOTHING;
  /** Bytes of the head or body that are still missing. */
  #left = PREFIX_BYTES;
  #seen = { rows: 0, bytes: 0, crc: 0 };
  #checkpoint: string | null = null;
  #isWhole = false;

  add(piece: Buffer): number {
    const before = this.#seen.rows;
    for (let at = 0; at < piece.length;) {
      if (this.#state === 'ended') throw new Mismatch('something follows the end of the table');
      const part = piece.subarray(at, at + this.#left);
      at += part.length;
      this.#left -= part.length;
      if (this.#state === 'body') this.#addBody(part);
      else this.#begun = Buffer.concat([this.#begun, part]);
      while (this.#left === 0) this.#next(); // after the end, it is infinite
    }
    return this.#seen.rows - before;
  }

  end(): void {
    if (this.#state !== 'ended') throw new Mismatch('the table has no end marker');
    if (!this.#isWhole) throw new Mismatch('the table does not say that it is whole');
  }

  #addBody(part: Buffer): void {
    this.#seen.bytes += part.length;
    this.#seen.crc = crc32(part, this.#seen.crc);
  }

  /** A prefix, head or body is complete. */
  #next(): void {
    const bytes = this.#begun;
    this.#begun = NOTHING;
    if (this.#state === 'prefix') this.#takePrefix(bytes);
    else if (this.#state === 'head') this.#takeHead(bytes);
    else {
      this.#check();
      this.#state = 'prefix';
      this.#left = PREFIX_BYTES;
    }
  }

  #takePrefix(bytes: Buffer): void {
    const size = bytes.readInt32LE(4);
    if (bytes.readUInt32LE(0) !== CONTINUATION || size < 0 || size > MOST_HEAD_BYTES)
      throw new Mismatch('the answer is no table of Arrow');
    [this.#state, this.#left] = size === 0 ? ['ended', Infinity] : ['head', size];
  }

  #takeHead(bytes: Buffer): void {
    const head = new ByteBuffer(bytes);
    const message = head.readInt32(0);
    const member = (table: number, offset: number) => {
      const at = head.__offset(table, offset);
      return at === 0 ? null : table + at;
    };
    const length = member(message, 10);
    const kind = member(message, 6);
    const header = member(message, 8);
    if (kind !== null && header !== null && head.readInt8(kind) === RECORD_BATCH) {
      const rows = member(head.__indirect(header), 4);
      this.#seen.rows += rows === null ? 0 : Number(head.readInt64(rows));
      const facts = factsOf(head, member(message, 12));
      const whole = facts.get('sluice.end');
      this.#isWhole = whole !== undefined;
      this.#checkpoint = whole ?? facts.get('sluice.checkpoint') ?? null;
      if (this.#checkpoint === null) throw new Mismatch('a record batch has no checkpoint');
    }
    this.#state = 'body';
    this.#left = length === null ? 0 : Number(head.readInt64(length));
  }

  #check(): void {
    if (this.#checkpoint === null) return;
    const said = JSON.parse(this.#checkpoint) as Tally;
    this.#checkpoint = null;
    const { rows, bytes, crc } = this.#seen;
    const seen: Tally = { rows, bytes, crc32: crc.toString(16).padStart(8, '0') };
    const wrong = (['rows', 'bytes', 'crc32'] as const).find((name) => said[name] !== seen[name]);
    if (wrong !== undefined)
      throw new Mismatch(
        `the received rows do not match their record batch: ${wrong} is ${seen[wrong]}, not ${said[wrong]}`,
      );
  }
}

/** The custom metadata of a message: a vector of pairs of key and value. */
function factsOf(head: ByteBuffer, at: number | null): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  if (at === null) return facts;
  const vector = head.__vector(at);
  for (let n = 0; n < head.__vector_len(at); n++) {
    const pair = head.__indirect(vector + 4 * n);
    const text = (slot: number) => String(head.__string(pair + head.__offset(pair, slot)));
    facts.set(text(4), text(6));
  }
  return facts;
}
