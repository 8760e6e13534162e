import { Decimal128, Long } from '../store/bson.ts';
import { TooManyDigits } from './digits.ts';
import { extendedValue } from './extended.ts';
import { BadRow } from './row.ts';
import { quoted } from '../terminal/text.ts';

/** The maximum number of levels of objects and arrays in an item. The item itself is the first level. */
export const MAX_DEPTH = 32;

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The stored form of a value in a JSON row: the value itself, with Extended JSON objects replaced in place by
 * their BSON values. Throws BadRow for anything an item may not contain: names with `$`, NUL or `__proto__`,
 * more than 32 levels, text that is not Unicode, numbers that no BSON number holds.
 */
export function storedValue(value: unknown, depth = 2): unknown {
  if (typeof value === 'string') return storedText(value);
  if (typeof value === 'number') return storedNumber(value);
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Long || value instanceof Decimal128) return value;
  if (value instanceof TooManyDigits) throw tooManyDigits(value);
  if (depth > MAX_DEPTH) throw new BadRow(`it is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) value[index] = storedValue(element, depth + 1);
    return value;
  }
  return storedObject(value as Record<string, unknown>, depth);
}

/** Throws BadRow when an item may not have a field of this name. */
export function checkName(name: string): void {
  const fault = faultOfName(name);
  if (fault !== null) throw new BadRow(`the field name ${quoted(name)} ${fault}`);
}

/** The reason why an item may not have a field of this name. null when it may. */
export function faultOfName(name: string): string | null {
  if (name.startsWith('$')) return 'begins with $';
  if (name.includes('\0')) return 'holds a NUL';
  if (name === '__proto__') return 'is not allowed';
  return LONE_SURROGATE.test(name) ? 'is not valid Unicode' : null;
}

function storedObject(object: Record<string, unknown>, depth: number): unknown {
  const names = Object.keys(object);
  if (names[0]?.startsWith('$')) return extendedValue(object);
  for (const name of names) {
    checkName(name);
    object[name] = storedValue(object[name], depth + 1);
  }
  return object;
}

/** The error for a number that cannot be stored with all its digits. */
export function tooManyDigits({ text }: TooManyDigits): BadRow {
  return new BadRow(`the number ${quoted(text)} has more digits than can be stored (34)`);
}

function storedText(text: string): string {
  // A lone `\ud800` is valid JSON, but UTF-8 cannot encode it. It would be stored as another character.
  if (LONE_SURROGATE.test(text)) throw new BadRow(`the text ${quoted(text)} holds half a surrogate pair`);
  return text;
}

function storedNumber(value: number): number {
  if (!Number.isFinite(value)) throw new BadRow('it holds a number larger than any that can be stored');
  return value;
}
