import { AppError, type BodyFault } from '../errors.ts';
import { characters } from '../engine/characters.ts';
import { pointer } from './pointer.ts';

/** How deep objects and arrays may be nested. */
const DEEPEST = 32;
/** Values of one body, of whatever kind: what is wrong with each of them is told, so there is a bound. */
const MOST_VALUES = 1000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** What JavaScript and its BSON library give a meaning of their own, whatever object they stand in. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

/**
 * Looks at a JSON text (RFC 8259) before it is parsed, for what JSON.parse does not tell: the place of a fault, in the same
 * words whatever the version of Node; names given twice, of which JSON.parse keeps the last; names and texts that cannot
 * be stored as they are. Returns those faults, in the order of the text. `numbers` is given each number as it is written,
 * by its JSON Pointer: JSON.parse keeps no more digits than a double has.
 *
 * AppError `malformed-json` with line and column when it is not JSON; `invalid-body` when it is nested deeper than 32
 * levels or has more than 1,000 values. What it returns from, JSON.parse takes.
 */
export function scanJson(text: string, numbers = new Map<string, string>()): BodyFault[] {
  return new Scanner(text, numbers).scan();
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

class Scanner {
  readonly #text: string;
  readonly #faults: BodyFault[] = [];
  readonly #numbers: Map<string, string>;
  /** The names and indexes that lead to the value being looked at. */
  readonly #path: (string | number)[] = [];
  #at = 0;
  #values = 0;

  constructor(text: string, numbers: Map<string, string>) {
    this.#text = text;
    this.#numbers = numbers;
  }

  scan(): BodyFault[] {
    this.#value('a JSON value');
    if (this.#at < this.#text.length) throw this.#malformed('the end');
    return this.#faults;
  }

  /** A value and the space around it. */
  #value(expected: string): void {
    this.#space();
    if (++this.#values > MOST_VALUES) throw this.#refusal(`more than ${MOST_VALUES} values in one body`);
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

  /** After a member: true behind a comma, false behind the closing bracket. */
  #goesOn(closing: ']' | '}'): boolean {
    if (this.#takeOne(',')) return true;
    if (this.#takeOne(closing)) return false;
    throw this.#malformed(`"," or "${closing}"`);
  }

  /** By a loop: a regular expression over a text of a megabyte could need more stack than there is. */
  #string(): string {
    const text = this.#text;
    const start = this.#at++;
    for (let isPlain = true; ; this.#at++) {
      const code = text.charCodeAt(this.#at);
      if (code === QUOTE) {
        const raw = text.slice(start, ++this.#at);
        return isPlain ? raw.slice(1, -1) : (JSON.parse(raw) as string);
      }
      // A control character, or NaN: the end.
      if (!(code >= 0x20)) throw this.#malformed('a character of a text, or its closing quote');
      if (code !== BACKSLASH) continue;
      isPlain = false;
      this.#at++;
      if (!this.#take(/["\\/bfnrt]|u[0-9a-fA-F]{4}/y)) throw this.#malformed('the rest of an escape');
      this.#at--;
    }
  }

  #checkName(name: string, names: Set<string>): void {
    if (names.has(name)) this.#fault('the name is given more than once');
    else if (name.startsWith('$')) this.#fault('a name must not begin with "$"');
    else if (name.includes('\0')) this.#fault('a name must not have a NUL');
    else if (RESERVED.has(name)) this.#fault('the name is reserved');
    else this.#wellFormed(name);
    names.add(name);
  }

  /** UTF-8, in which all is stored, has no form for half a surrogate pair. */
  #wellFormed(text: string): void {
    if (/\p{Surrogate}/u.test(text)) this.#fault('half a surrogate pair is no character');
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
    return new AppError('invalid-body', `The body is ${detail}.`, { errors });
  }

  /** Lines end in LF, CRLF or CR; columns are counted in characters, both from 1. */
  #malformed(expected: string): AppError {
    const lines = this.#text.slice(0, this.#at).split(/\r\n|\r|\n/);
    const column = characters(lines.at(-1) ?? '') + 1;
    const found = this.#text.codePointAt(this.#at);
    const came = found === undefined ? 'the end' : JSON.stringify(String.fromCodePoint(found));
    return new AppError(
      'malformed-json',
      `The body is not JSON: line ${lines.length}, column ${column} has ${came}, expected ${expected}.`,
    );
  }
}
