const CR_LF_CR_LF = Buffer.from('\r\n\r\n');
const LF = 10;
const MOST_HEAD_BYTES = 65_536;
const MOST_LINE_BYTES = 16_384;
const NOTHING = Buffer.alloc(0);

/** The bytes are not an HTTP/1.1 answer. */
export class NotHttp extends Error {
  override readonly name = 'NotHttp';
}

/** The status line and the headers of an answer. Headers are looked up only when they are asked for. */
export class Head {
  readonly status: number;
  readonly #text: string;

  /** `text`: the head without the empty line at its end. */
  constructor(text: string) {
    if (!/^HTTP\/1\.[01] [1-9]\d\d(?: |\r|$)/.test(text))
      throw new NotHttp(`an answer begins with ${JSON.stringify(text.slice(0, 40))}`);
    this.status = Number(text.slice(9, 12));
    this.#text = text;
  }

  /** The value of a header, the first one when it comes several times. null when it is missing. */
  header(name: string): string | null {
    return patternOf(name).exec(this.#text)?.[1]?.trimEnd() ?? null;
  }
}

const patterns = new Map<string, RegExp>();

function patternOf(name: string): RegExp {
  let pattern = patterns.get(name);
  if (!pattern) patterns.set(name, (pattern = new RegExp(`\\r\\n${name}:[ \\t]*([^\\r\\n]*)`, 'i')));
  return pattern;
}

/** What becomes of an answer. */
export interface AnswerParts {
  onHead(head: Head): void;
  /** A piece of the body. It is valid only until this returns. */
  onBody(piece: Buffer): void;
  onEnd(): void;
}

/**
 * Reads the answers of a connection as their bytes come, and passes their bodies on without copying: as chunks, by their
 * length, or up to the end of the connection. Throws NotHttp for anything else.
 */
export class AnswerReader {
  readonly #parts: AnswerParts;
  #state: 'head' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'counted' | 'until-close' = 'head';
  #line = NOTHING;
  #left = 0;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at = this.#step(bytes, at);
  }

  /** The connection has ended. Returns whether this ends the answer, too. */
  close(): boolean {
    if (this.#state !== 'until-close') return false;
    this.#end();
    return true;
  }

  #step(bytes: Buffer, at: number): number {
    if (this.#state === 'head') return this.#takeHead(bytes, at);
    const isBody = this.#state === 'chunk' || this.#state === 'counted' || this.#state === 'until-close';
    return isBody ? this.#takeBody(bytes, at) : this.#takeLine(bytes, at);
  }

  #takeHead(bytes: Buffer, at: number): number {
    const before = this.#line.length;
    const whole = before === 0 ? bytes.subarray(at) : Buffer.concat([this.#line, bytes.subarray(at)]);
    const end = whole.indexOf(CR_LF_CR_LF);
    if (end < 0) {
      if (whole.length > MOST_HEAD_BYTES) throw new NotHttp('the head of an answer does not end');
      this.#line = Buffer.from(whole); // the socket reuses its memory
      return bytes.length;
    }
    this.#line = NOTHING;
    this.#begin(new Head(whole.toString('latin1', 0, end)));
    return at + end + CR_LF_CR_LF.length - before;
  }

  #begin(head: Head): void {
    if (head.status < 200) return; // another head follows
    const length = head.header('content-length');
    if (length !== null && !/^\d{1,15}$/.test(length))
      throw new NotHttp(`the length of an answer is ${length}`);
    const hasBody = head.status !== 204 && head.status !== 304;
    const isChunked = /chunked$/i.test(head.header('transfer-encoding') ?? '');
    this.#left = Number(length ?? Infinity);
    this.#state = isChunked ? 'size' : length === null ? 'until-close' : 'counted';
    this.#parts.onHead(head);
    if (!hasBody || (this.#state === 'counted' && this.#left === 0)) this.#end();
  }

  #takeBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    this.#parts.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (this.#left > 0) return end;
    if (this.#state === 'counted') this.#end();
    else this.#state = 'chunk-end';
    return end;
  }

  #takeLine(bytes: Buffer, at: number): number {
    const lf = bytes.indexOf(LF, at);
    const stop = lf < 0 ? bytes.length : lf + 1;
    const line =
      this.#line.length === 0
        ? bytes.subarray(at, stop)
        : Buffer.concat([this.#line, bytes.subarray(at, stop)]);
    if (line.length > MOST_LINE_BYTES) throw new NotHttp('a line between two chunks does not end');
    this.#line = lf < 0 ? Buffer.from(line) : NOTHING; // the socket reuses its memory
    if (lf >= 0) this.#useLine(line.toString('latin1').trimEnd());
    return stop;
  }

  #useLine(line: string): void {
    if (this.#state === 'size') {
      if (!/^[0-9a-f]{1,12}\s*(?:;|$)/i.test(line))
        throw new NotHttp(`not the size of a chunk: ${JSON.stringify(line)}`);
      this.#left = parseInt(line, 16);
      this.#state = this.#left === 0 ? 'trailer' : 'chunk';
      return;
    }
    if (this.#state === 'trailer') {
      if (line === '') this.#end();
      return;
    }
    if (line !== '') throw new NotHttp(`a chunk is followed by ${JSON.stringify(line)}`);
    this.#state = 'size';
  }

  #end(): void {
    this.#state = 'head';
    this.#left = 0;
    this.#parts.onEnd();
  }
}
