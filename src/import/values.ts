import { Decimal128, Long } from '../store/bson.ts';
import { quoted } from '../terminal/text.ts';
import { extendedValue, membersOf } from './extended-json.ts';
import { TooManyDigits } from './numbers.ts';
import type { Fields } from './paths.ts';
import { BadRow } from './row.ts';

/** The maximum number of levels of objects and arrays in an item. The item itself is the first level. */
export const MAX_DEPTH = 32;

/** The names of a reference to another document (DBRef), which MongoDB allows to begin with $. */
const REFERENCE: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The stored form of a value in a JSON row: the value itself, with a Map for each document and BSON values for those of
 * Extended JSON. Throws BadRow for anything an item may not contain: names with `$`, NUL or `__proto__`,
 * more than 32 levels, text that is not Unicode, numbers that no BSON number holds.
 */
export function storedValue(value: unknown, depth = 2): unknown {
  if (typeof value === 'string') return storedText(value);
  if (typeof value === 'number') return storedNumber(value);
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Long || value instanceof Decimal128) return value;
  if (value instanceof TooManyDigits) throw tooManyDigits(value.text);
  if (depth > MAX_DEPTH) throw new BadRow(`the value is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    return value.map((element) => storedValue(element, depth + 1));
  }
  return storedObject(membersOf(value), depth);
}

/** Throws BadRow when an item may not have a field of this name. */
export function checkName(name: string): void {
  const fault = nameFault(name);
  if (fault !== null) throw new BadRow(`the field name ${quoted(name)} ${fault}`);
}

/** The reason why an item may not have a field of this name. null when it may. */
export function nameFault(name: string): string | null {
  if (name.startsWith('$')) return 'begins with $';
  if (name.includes('\0')) return 'contains a NUL character';
  if (name === '__proto__') return 'is not allowed';
  return LONE_SURROGATE.test(name) ? 'is not valid Unicode' : null;
}

function storedObject(members: ReadonlyMap<string, unknown>, depth: number): unknown {
  const [first = ''] = members.keys();
  const isReference = first === '$ref' && members.has('$id');
  if (first.startsWith('$') && !isReference)
    return extendedValue(members, (value) => storedValue(value, depth + 1));
  const document: Fields = new Map();
  for (const [name, value] of members) {
    if (!isReference || !REFERENCE.has(name)) checkName(name);
    document.set(name, storedValue(value, depth + 1));
  }
  return document;
}

/** The error for a number that cannot be stored with all its digits. */
export function tooManyDigits(text: string): BadRow {
  return new BadRow(`the number ${quoted(text)} cannot be stored with all its digits (a Decimal128 has 34)`);
}

function storedText(text: string): string {
  // A lone `\ud800` is valid JSON, but UTF-8 cannot encode it. It would be stored as another character.
  if (LONE_SURROGATE.test(text))
    throw new BadRow(`the string ${quoted(text)} contains half of a surrogate pair`);
  return text;
}

function storedNumber(value: number): number {
  if (!Number.isFinite(value)) throw new BadRow('a number is too large to be stored');
  return value;
}
