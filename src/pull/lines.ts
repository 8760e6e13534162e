const LF = 0x0a;
/** How the line of a row begins, and no control line does: with its key, `_id` beside a field `id` of the row's own. */
const ROWS = ['{"id":', '{"_id":'].map((begin) => Buffer.from(begin));

/** A run of whole row lines, or one control line without its end. */
export type Part =
  | { readonly kind: 'rows'; readonly bytes: Buffer; readonly rows: number }
  | { readonly kind: 'control'; readonly text: string };

/** Cuts the bytes of an answer into runs of rows and control lines, wherever its chunks end. */
export class LineReader {
  /** The pieces of a line that is not whole yet. */
  #begun: Buffer[] = [];

  *read(chunk: Buffer): Generator<Part, void, undefined> {
    const first = chunk.indexOf(LF) + 1;
    if (first === 0) {
      this.#begun.push(chunk);
      return;
    }
    let at = 0;
    if (this.#begun.length > 0) {
      yield partOf(Buffer.concat([...this.#begun, chunk.subarray(0, first)]));
      this.#begun = [];
      at = first;
    }
    const end = chunk.lastIndexOf(LF) + 1;
    yield* wholeLines(chunk.subarray(at, end));
    if (end < chunk.length) this.#begun.push(chunk.subarray(end));
  }
}

function* wholeLines(bytes: Buffer): Generator<Part, void, undefined> {
  let [begin, rows] = [0, 0];
  for (let at = 0; at < bytes.length;) {
    const next = bytes.indexOf(LF, at) + 1;
    if (isRow(bytes, at)) rows++;
    else {
      if (rows > 0) yield { kind: 'rows', bytes: bytes.subarray(begin, at), rows };
      yield partOf(bytes.subarray(at, next));
      [begin, rows] = [next, 0];
    }
    at = next;
  }
  if (rows > 0) yield { kind: 'rows', bytes: bytes.subarray(begin), rows };
}

function partOf(line: Buffer): Part {
  if (isRow(line, 0)) return { kind: 'rows', bytes: line, rows: 1 };
  return { kind: 'control', text: line.toString('utf8', 0, line.length - 1) };
}

function isRow(bytes: Buffer, at: number): boolean {
  return ROWS.some((begin) => startsWith(bytes, at, begin));
}

function startsWith(bytes: Buffer, at: number, begin: Buffer): boolean {
  for (let i = 0; i < begin.length; i++) if (bytes[at + i] !== begin[i]) return false;
  return true;
}
