import { AppError, type BodyFault } from '../base/errors.ts';

/** The deepest nesting of objects and arrays. */
const DEEPEST = 32;
/** The most values of any kind in one body. Every fault is reported, so their number needs a bound. */
const MOST_VALUES = 1000;

/** The fault of a name that its object has twice. JSON.parse keeps the last of its values. */
export const DUPLICATE = 'the name is a duplicate';

/** Names to which JavaScript or its BSON library gives a special meaning in any object. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

/** The tokens of a JSON text but for blanks and colons. A string with a colon behind it is a name. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]|[^\s{}[\],:"]+/g;

/** What JSON.parse does not tell of a text that it reads. */
export interface JsonScan {
  /** Duplicate names, and names and texts that cannot be stored as they are, in the order of the text. */
  readonly faults: readonly BodyFault[];
  /** The source text of each number by its JSON Pointer: JSON.parse keeps no more digits than a double has. */
  readonly numbers: ReadonlyMap<string, string>;
}

/** Scans a text that JSON.parse has read. Throws AppError `invalid-body` when it is too deep or has too many values. */
export function scanJson(text: string, mostValues = MOST_VALUES): JsonScan {
  const faults: BodyFault[] = [];
  const numbers = new Map<string, string>();
  /** The name or index in each open object and array, and the names that each has had. */
  const path: (string | number)[] = [];
  const names: Set<string>[] = [];
  let values = 0;
  const refuse = (detail: string): never => {
    const errors = [...faults, { pointer: pointer(path), detail }];
    throw new AppError('invalid-body', `The request body is ${detail}.`, { errors });
  };
  const check = (detail: string | undefined): void => {
    if (detail !== undefined) faults.push({ pointer: pointer(path), detail });
  };
  for (const [token, colon] of text.matchAll(TOKENS)) {
    const last = path.at(-1);
    if (colon !== undefined) {
      const name = JSON.parse(token.slice(0, -colon.length)) as string;
      path[path.length - 1] = name;
      check(names.at(-1)?.has(name) ? DUPLICATE : faultOfName(name));
      names.at(-1)?.add(name);
    } else if (token === ',') {
      if (typeof last === 'number') path[path.length - 1] = last + 1;
    } else if (token === '}' || token === ']') {
      path.pop();
      names.pop();
    } else {
      if (++values > mostValues) refuse(`larger than ${mostValues} values`);
      if (token.startsWith('"')) check(faultOfText(JSON.parse(token) as string));
      else if (/^[-\d]/.test(token)) numbers.set(pointer(path), token);
      else if (token === '{' || token === '[') {
        if (path.length >= DEEPEST) refuse(`nested deeper than ${DEEPEST} levels`);
        path.push(token === '[' ? 0 : '');
        names.push(new Set());
      }
    }
  }
  return { faults, numbers };
}

function faultOfName(name: string): string | undefined {
  if (name.startsWith('$')) return 'a name must not begin with "$"';
  if (name.includes('\0')) return 'a name must not contain NUL';
  return RESERVED.has(name) ? 'the name is reserved' : faultOfText(name);
}

/** All text is stored as UTF-8, which cannot encode half a surrogate pair. */
function faultOfText(text: string): string | undefined {
  return /\p{Surrogate}/u.test(text) ? 'a lone surrogate is not a character' : undefined;
}

/** Formats names and indexes as a JSON Pointer (RFC 6901). The pointer of the whole document is the empty text. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
