import type { AppError } from '../base/errors.ts';
import { pathFault } from '../rows/selection.ts';
import { parameterError, quote, type Query } from './query.ts';

/** `read` returns undefined when it is absent, and throws AppError `invalid-parameter` for a wrong text. */
export interface Parameter<T> {
  readonly name: string;
  /** The expected form, as messages name it: "an integer from 1 to 1000". */
  readonly expected: string;
  /** The expected form as a JSON Schema of the value. */
  readonly schema: ParameterSchema;
  /** For /openapi.json; see `documented`. */
  readonly doc?: ParameterDoc;
  read(query: Query): T | undefined;
}

type ParameterSchema = Readonly<Record<string, unknown>>;

/**
 * What /openapi.json says of a parameter. The reference page fills in every example and every fallback of an operation at
 * once, so a parameter that excludes another one, or is valid only with some values of it, has neither.
 */
interface ParameterDoc {
  readonly description: string;
  readonly example?: string | number;
  /** The value that applies when the parameter is absent. */
  readonly fallback?: string | number | boolean;
}

export function documented<T>(
  parameter: Parameter<T>,
  description: string,
  more: Omit<ParameterDoc, 'description'> = {},
): Parameter<T> {
  return { ...parameter, doc: { description, ...more } };
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
  const schema = { type: 'integer', minimum, maximum };
  return parameter(name, expected, schema, (text) => {
    if (!/^(0|[1-9]\d{0,15})$/.test(text)) return undefined;
    const value = Number(text);
    return value >= minimum && value <= maximum ? value : undefined;
  });
}

/** An unsigned 64-bit integer in decimal digits without leading zeros. */
export function unsigned64(name: string): Parameter<bigint> {
  const schema = { type: 'integer', minimum: 0, maximum: 2 ** 64 };
  return parameter(name, 'an integer from 0 to 18446744073709551615', schema, (text) => {
    if (!/^(0|[1-9]\d{0,19})$/.test(text)) return undefined;
    const value = BigInt(text);
    return value === BigInt.asUintN(64, value) ? value : undefined;
  });
}

export function oneOf<const T extends string>(name: string, words: readonly T[]): Parameter<T> {
  const schema = { type: 'string', enum: words };
  return parameter(name, `one of ${words.join(', ')}`, schema, (text) => words.find((word) => word === text));
}

/** A text of 1 to `maximumBytes` bytes of UTF-8. */
export function text(name: string, maximumBytes: number): Parameter<string> {
  // A schema counts characters. A text never has more characters than bytes.
  const schema = { type: 'string', minLength: 1, maxLength: maximumBytes };
  return parameter(name, `a string of 1 to ${maximumBytes} bytes`, schema, (value) =>
    value !== '' && Buffer.byteLength(value) <= maximumBytes ? value : undefined,
  );
}

/** As `text`, but the value is what `parse` makes of it, which throws the AppError for a text that is none. */
export function textAs<T>(name: string, maximumBytes: number, parse: (text: string) => T): Parameter<T> {
  const plain = text(name, maximumBytes);
  const read = (query: Query) => {
    const given = plain.read(query);
    return given === undefined ? undefined : parse(given);
  };
  return { ...plain, read };
}

export function conflict(parameter: string, detail: string): AppError {
  return parameterError('conflicting-parameters', parameter, detail);
}

export function invalid(parameter: string, detail: string, cause?: unknown): AppError {
  return parameterError('invalid-parameter', parameter, detail, cause);
}

/** A name of a field, or several separated by dots. */
const PATH = '[^,.\\u0000]+(\\.[^,.\\u0000]+)*';

/** Paths by commas: each of 1 to `maximumBytes` bytes of UTF-8, without empty names, once; at most `most`. */
export function paths(name: string, most: number, maximumBytes: number): Parameter<readonly string[]> {
  const description = 'the name or path of a field, such as a.b';
  const items = { type: 'string', minLength: 1, maxLength: maximumBytes, pattern: `^${PATH}$`, description };
  const schema = { type: 'array', items, minItems: 1, maxItems: most, uniqueItems: true };
  return parameter(
    name,
    `1 to ${most} different names or paths (a.b) of fields separated by commas, each of at most ${maximumBytes} bytes`,
    schema,
    (value) => {
      const list = value.split(',');
      const sound = list.every(
        (entry) => pathFault(entry) === undefined && Buffer.byteLength(entry) <= maximumBytes,
      );
      return sound && list.length <= most && new Set(list).size === list.length ? list : undefined;
    },
  );
}

/** A parameter of any form. `parse` returns undefined for a text that does not match `expected`. */
export function parameter<T>(
  name: string,
  expected: string,
  schema: ParameterSchema,
  parse: (text: string) => T | undefined,
): Parameter<T> {
  return {
    name,
    expected,
    schema,
    read(query) {
      const given = query.get(name);
      if (given === undefined) return undefined;
      const value = parse(given);
      if (value === undefined) throw invalid(name, `${name} must be ${expected}; got ${quote(given)}.`);
      return value;
    },
  };
}
