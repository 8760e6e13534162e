import type { RowEncoder } from '../../rows/rows.ts';
import type { Batch } from '../../store/batch.ts';

export const EVENT_STREAM = 'text/event-stream';

const LF = 0x0a;
const DATA = Buffer.from('data: ');
const BLANK = Buffer.from('\n');
/**
 * How an event is named whose line begins so. Rows and removals have no name: a page hears them by `onmessage`. A
 * failure is not called `error`, because that is how an EventSource reports on its connection.
 */
const NAMES = { checkpoint: 'checkpoint', end: 'end', error: 'failure' } as const;

/**
 * The lines of a feed as server-sent events (HTML, 9.2): the data of an event is a line. A checkpoint and an end carry
 * their cursor as the event's id, so an EventSource continues there when it connects again.
 */
export class EventEncoder implements RowEncoder {
  readonly #lines: RowEncoder;
  #isInLine = false;

  constructor(lines: RowEncoder) {
    this.#lines = lines;
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    for (const chunk of this.#lines.encode(batch, chunkBytes)) yield this.events(chunk);
  }

  cut(): number {
    return this.#lines.cut();
  }

  close(): void {
    this.#lines.close();
  }

  /** Text that continues the lines, as events. */
  events(chunk: Uint8Array): Buffer {
    const events = asEvents(chunk, this.#isInLine);
    if (chunk.length > 0) this.#isInLine = chunk.at(-1) !== LF;
    return events;
  }
}

/** Lines as events. `isInLine`: the first one is the rest of a line. */
export function asEvents(lines: Uint8Array, isInLine = false): Buffer {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < lines.length;) {
    const feed = lines.indexOf(LF, at);
    const end = feed < 0 ? lines.length : feed + 1;
    const line = lines.subarray(at, end);
    if (!isInLine || at > 0) parts.push(headOf(line), DATA);
    parts.push(line);
    if (feed >= 0) parts.push(BLANK);
    at = end;
  }
  return Buffer.concat(parts);
}

/** What stands before the data of an event. A control line is never split, and a row begins with its key. */
function headOf(line: Uint8Array): Buffer {
  const text = Buffer.from(line.buffer, line.byteOffset, line.length);
  const [, kind] = /^\{"(checkpoint|end|error)":/.exec(text.toString('latin1', 0, 16)) ?? [];
  if (kind === undefined) return Buffer.alloc(0);
  const cursor = /^\{"(?:checkpoint|end)":\{"cursor":"([\w-]+)"/.exec(text.toString('latin1'))?.[1];
  const id = cursor === undefined ? '' : `id: ${cursor}\n`;
  return Buffer.from(`event: ${NAMES[kind as keyof typeof NAMES]}\n${id}`);
}
