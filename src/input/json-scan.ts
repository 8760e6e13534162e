import { AppError, type BodyFault } from '../errors.ts';

/** The deepest nesting of objects and arrays. */
const DEEPEST = 32;
/** The most values of any kind in one body. Every fault is reported, so their number needs a bound. */
const MOST_VALUES = 1000;

/** The fault of a name that its object has twice. JSON.parse keeps the last of its values. */
export const DUPLICATE = 'the name is a duplicate';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Names to which JavaScript or its BSON library gives a special meaning in any object. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

/**
 * Scans a JSON text (RFC 8259) before it is parsed, for faults that JSON.parse does not report: the place of a syntax
 * error, in the same words on every version of Node; duplicate names; names and texts that cannot be stored as they
 * are. Returns those faults in the order of the text. `numbers` receives the source text of each number by its JSON
 * Pointer, because JSON.parse keeps no more digits than a double has.
 *
 * Throws AppError `malformed-json` with line and column when the text is not JSON, and `invalid-body` when it is
 * nested deeper than 32 levels or has more than `mostValues` (1,000) values. JSON.parse accepts every text for which this function
 * returns.
 */
export function scanJson(
  text: string,
  numbers = new Map<string, string>(),
  mostValues = MOST_VALUES,
): BodyFault[] {
  return new Scanner(text, numbers, mostValues).scan();
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

class Scanner {
  readonly #text: string;
  readonly #faults: BodyFault[] = [];
  readonly #numbers: Map<string, string>;
  /** The names and indexes that lead to the current value. */
  readonly #path: (string | number)[] = [];
  readonly #mostValues: number;
  #at = 0;
  #values = 0;

  constructor(text: string, numbers: Map<string, string>, mostValues: number) {
    this.#text = text;
    this.#numbers = numbers;
    this.#mostValues = mostValues;
  }

  scan(): BodyFault[] {
    this.#value('a JSON value');
    if (this.#at < this.#text.length) throw this.#malformed('the end of the body');
    return this.#faults;
  }

  /** Scans a value and the white space around it. */
  #value(expected: string): void {
    this.#space();
    if (++this.#values > this.#mostValues) throw this.#refusal(`larger than ${this.#mostValues} values`);
    const first = this.#text[this.#at];
    if (first === '{') this.#object();
    else if (first === '[') this.#array();
    else if (first === '"') this.#wellFormed(this.#string());
    else if (!this.#number() && !this.#take(/true|false|null/y)) throw this.#malformed(expected);
    this.#space();
  }

  #number(): boolean {
    const start = this.#at;
    if (!this.#take(NUMBER)) return false;
    this.#numbers.set(pointer(this.#path), this.#text.slice(start, this.#at));
    return true;
  }

  #object(): void {
    const names = new Set<string>();
    this.#enter();
    for (let more = !this.#takeOne('}'); more; more = this.#goesOn('}')) {
      this.#space();
      if (this.#text[this.#at] !== '"') throw this.#malformed('a name in double quotes');
      const name = this.#string();
      this.#path.push(name);
      this.#checkName(name, names);
      this.#space();
      if (!this.#takeOne(':')) throw this.#malformed('":"');
      this.#value('a value');
      this.#path.pop();
    }
  }

  #array(): void {
    this.#enter();
    let index = 0;
    for (let more = !this.#takeOne(']'); more; more = this.#goesOn(']')) {
      this.#path.push(index++);
      this.#value('a value');
      this.#path.pop();
    }
  }

  #enter(): void {
    if (this.#path.length >= DEEPEST) throw this.#refusal(`nested deeper than ${DEEPEST} levels`);
    this.#at++;
    this.#space();
  }

  /** Called after a member: returns true after a comma, false after the closing bracket. */
  #goesOn(closing: ']' | '}'): boolean {
    if (this.#takeOne(',')) return true;
    if (this.#takeOne(closing)) return false;
    throw this.#malformed(`"," or "${closing}"`);
  }

  /** Scans by a loop, because a regular expression over a text of one megabyte could exhaust the stack. */
  #string(): string {
    const text = this.#text;
    const start = this.#at++;
    for (let isPlain = true; ; this.#at++) {
      const code = text.charCodeAt(this.#at);
      if (code === QUOTE) {
        const raw = text.slice(start, ++this.#at);
        return isPlain ? raw.slice(1, -1) : (JSON.parse(raw) as string);
      }
      // A control character, or NaN at the end of the text.
      if (!(code >= 0x20)) throw this.#malformed('a character of a string, or its closing quote');
      if (code !== BACKSLASH) continue;
      isPlain = false;
      this.#at++;
      if (!this.#take(/["\\/bfnrt]|u[0-9a-fA-F]{4}/y)) throw this.#malformed('the rest of an escape');
      this.#at--;
    }
  }

  #checkName(name: string, names: Set<string>): void {
    if (names.has(name)) this.#fault(DUPLICATE);
    else if (name.startsWith('$')) this.#fault('a name must not begin with "$"');
    else if (name.includes('\0')) this.#fault('a name must not contain NUL');
    else if (RESERVED.has(name)) this.#fault('the name is reserved');
    else this.#wellFormed(name);
    names.add(name);
  }

  /** All text is stored as UTF-8, which cannot encode half a surrogate pair. */
  #wellFormed(text: string): void {
    if (/\p{Surrogate}/u.test(text)) this.#fault('a lone surrogate is not a character');
  }

  #fault(detail: string): void {
    this.#faults.push({ pointer: pointer(this.#path), detail });
  }

  #space(): void {
    while (SPACE.has(this.#text.charCodeAt(this.#at))) this.#at++;
  }

  #takeOne(char: string): boolean {
    const is = this.#text[this.#at] === char;
    if (is) this.#at++;
    return is;
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const is = pattern.test(this.#text);
    if (is) this.#at = pattern.lastIndex;
    return is;
  }

  #refusal(detail: string): AppError {
    const errors = [...this.#faults, { pointer: pointer(this.#path), detail }];
    return new AppError('invalid-body', `The request body is ${detail}.`, { errors });
  }

  /** Lines end in LF, CRLF or CR. Columns are counted in characters. Both start at 1. */
  #malformed(expected: string): AppError {
    const lines = this.#text.slice(0, this.#at).split(/\r\n|\r|\n/);
    const column = characters(lines.at(-1) ?? '') + 1;
    const found = this.#text.codePointAt(this.#at);
    const came = found === undefined ? 'the end of the body' : JSON.stringify(String.fromCodePoint(found));
    return new AppError(
      'malformed-json',
      `The request body is not JSON: expected ${expected} at line ${lines.length}, column ${column}; got ${came}.`,
    );
  }
}

/** Formats names and indexes as a JSON Pointer (RFC 6901). The pointer of the whole document is the empty text. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

const SECOND_HALF = /[\udc00-\udfff]/g;

/** Counts the characters (Unicode code points) of a text, as JSON Schema does. */
export function characters(text: string): number {
  return text.length - (text.match(SECOND_HALF)?.length ?? 0);
}
