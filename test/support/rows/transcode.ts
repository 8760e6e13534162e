import type { Framing, RowEncoder } from '../../../src/rows/rows.ts';
import type { Batch } from '../../../src/store/batch.ts';
import type { Slots } from '../../../src/store/turns/slots.ts';
import type { TextTranscoder } from './javascript-transcoder.ts';

/** Documents in the form of a batch: the body of a BSON array. */
export function arrayBody(rows: readonly Uint8Array[]): Buffer {
  return Buffer.concat(rows.flatMap((bytes, i) => [Buffer.from(`\x03${i}\0`), bytes]));
}

/** A batch with this body, in a slot of its own. `start` bytes come before the body. */
export function batchOf(slots: Slots, body: Uint8Array, start = 0): Batch {
  const slot = slots.take(start + body.length);
  slot.bytes().fill(0xee).set(body, start);
  const release = () => slot.release();
  return { slot, start, length: body.length, rows: 1, last: null, more: false, release };
}

/** The chunks that an encoder makes of a batch, each copied. Throws as the encoder does. */
export function chunksOf(
  transcoder: TextTranscoder,
  batch: Batch,
  chunkBytes = 16_000,
  framing: Framing = 'lines',
  make: (transcoder: TextTranscoder) => RowEncoder = (each) => each.encoder(framing),
): Buffer[] {
  const encoder = make(transcoder);
  try {
    return Array.from(encoder.encode(batch, chunkBytes), (chunk) => Buffer.from(chunk));
  } finally {
    encoder.close();
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of these chunks. Throws when they are not UTF-8, which a lenient decoder would hide. */
export function decode(chunks: readonly Uint8Array[]): string {
  return strict.decode(Buffer.concat(chunks));
}

/** The encoded text of these rows: by default as lines, each ended by LF. */
export function transcode(
  transcoder: TextTranscoder,
  slots: Slots,
  rows: readonly Uint8Array[],
  chunkBytes = 16_000,
  make?: (transcoder: TextTranscoder) => RowEncoder,
): string {
  const batch = batchOf(slots, arrayBody(rows), 9);
  try {
    return decode(chunksOf(transcoder, batch, chunkBytes, 'lines', make));
  } finally {
    batch.release();
  }
}
