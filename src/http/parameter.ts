import { AppError } from '../errors.ts';
import { quote, type Query } from './query.ts';

/** A query parameter: its name and how its text becomes a value. `read` gives undefined when it is absent. */
export interface Parameter<T> {
  readonly name: string;
  /** What is expected, as it stands in messages: "an integer from 1 to 1000". */
  readonly expected: string;
  read(query: Query): T | undefined;
}

/** An integer in decimal digits without sign or leading zeros, from `minimum` to `maximum`. */
export function integer(
  name: string,
  minimum: number,
  maximum: number = Number.MAX_SAFE_INTEGER,
): Parameter<number> {
  const expected =
    maximum === Number.MAX_SAFE_INTEGER
      ? `an integer of at least ${minimum}`
      : `an integer from ${minimum} to ${maximum}`;
  return parameter(name, expected, (text) => {
    if (!/^(0|[1-9]\d{0,15})$/.test(text)) return undefined;
    const value = Number(text);
    return value >= minimum && value <= maximum ? value : undefined;
  });
}

/** An integer of 64 bits without sign, in decimal digits without leading zeros. */
export function unsigned64(name: string): Parameter<bigint> {
  return parameter(name, 'an integer from 0 to 18446744073709551615', (text) => {
    if (!/^(0|[1-9]\d{0,19})$/.test(text)) return undefined;
    const value = BigInt(text);
    return value === BigInt.asUintN(64, value) ? value : undefined;
  });
}

/** A finite number as JSON writes it. */
export function finiteNumber(name: string): Parameter<number> {
  return parameter(name, 'a finite number', (text) => {
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return undefined;
    const value = Number(text);
    return Number.isFinite(value) ? value : undefined;
  });
}

/** One of a few words. */
export function oneOf<T extends string>(name: string, words: readonly T[]): Parameter<T> {
  return parameter(name, `one of ${words.join(', ')}`, (text) => words.find((word) => word === text));
}

/** A text of 1 to `maximumBytes` bytes of UTF-8. */
export function text(name: string, maximumBytes: number): Parameter<string> {
  return parameter(name, `a text of 1 to ${maximumBytes} bytes`, (value) =>
    value !== '' && Buffer.byteLength(value) <= maximumBytes ? value : undefined,
  );
}

/** Names separated by commas: each 1 to `maximumBytes` bytes of UTF-8, none twice, at most `most`. */
export function names(name: string, most: number, maximumBytes: number): Parameter<readonly string[]> {
  return parameter(name, `1 to ${most} different names separated by commas`, (value) => {
    const list = value.split(',');
    const sound = list.every((entry) => entry !== '' && Buffer.byteLength(entry) <= maximumBytes);
    return sound && list.length <= most && new Set(list).size === list.length ? list : undefined;
  });
}

function parameter<T>(name: string, expected: string, parse: (text: string) => T | undefined): Parameter<T> {
  return {
    name,
    expected,
    read(query) {
      const given = query.get(name);
      if (given === undefined) return undefined;
      const value = parse(given);
      if (value === undefined) {
        throw new AppError('invalid-parameter', `${name} must be ${expected}; it came as ${quote(given)}.`, {
          parameter: name,
        });
      }
      return value;
    },
  };
}
