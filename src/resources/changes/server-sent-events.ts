import type { RowEncoder } from '../../rows/rows.ts';

export const EVENT_STREAM = 'text/event-stream';

const LF = 0x0a;
/** The events of lines that begin so. Rows have none. `error` is how an EventSource reports on its connection. */
const NAMES = { checkpoint: 'checkpoint', end: 'end', error: 'failure' } as const;

/** Each line stands between what its beginning calls for and `end`, in place of its LF. Chunks may end within one. */
interface Framing {
  readonly head: (line: Uint8Array) => Uint8Array;
  readonly end: Uint8Array;
}

/** Lines as server-sent events (HTML, 9.2). The cursor of a checkpoint or end is the id: EventSources resume there. */
export const AS_EVENTS: Framing = { head: headOf, end: Buffer.from('\n\n') };

/** The lines of another encoder in a frame. `framed` frames text that continues them. */
export function framedLines(
  lines: RowEncoder,
  framing: Framing,
): RowEncoder & { readonly framed: (chunk: Uint8Array) => Buffer } {
  let isInLine = false;
  const next = (chunk: Uint8Array): Buffer => {
    const text = framed(chunk, framing, isInLine);
    if (chunk.length > 0) isInLine = chunk.at(-1) !== LF;
    return text;
  };
  return {
    *encode(batch, chunkBytes) {
      for (const chunk of lines.encode(batch, chunkBytes)) yield next(chunk);
    },
    cut: () => lines.cut(),
    close: () => lines.close(),
    framed: next,
  };
}

/** Lines in a frame. `isInLine`: the first one is the rest of a line. */
export function framed(lines: Uint8Array, { head, end }: Framing, isInLine = false): Buffer {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < lines.length;) {
    const feed = lines.indexOf(LF, at);
    const line = lines.subarray(at, feed < 0 ? lines.length : feed);
    if (!isInLine || at > 0) parts.push(head(line));
    parts.push(line);
    if (feed >= 0) parts.push(end);
    at += line.length + 1;
  }
  return Buffer.concat(parts);
}

/** What stands before the data of an event. A control line is never split, and a row begins with its key. */
function headOf(line: Uint8Array): Buffer {
  const text = Buffer.from(line.buffer, line.byteOffset, line.length);
  const [, kind] = /^\{"(checkpoint|end|error)":/.exec(text.toString('latin1', 0, 16)) ?? [];
  if (kind === undefined) return Buffer.from('data: ');
  const cursor = /^\{"(?:checkpoint|end)":\{"cursor":"([\w.-]+)"/.exec(text.toString('latin1'))?.[1];
  const id = cursor === undefined ? '' : `id: ${cursor}\n`;
  return Buffer.from(`event: ${NAMES[kind as keyof typeof NAMES]}\n${id}data: `);
}
