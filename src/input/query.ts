import { decoded } from '../base/decoded.ts';
import { AppError } from '../base/errors.ts';
import type { ProblemCode } from '../base/problems.ts';

/** Bytes of path and query: a cursor of 12 KiB and 2 KiB for the rest. A request's whole head may have 16 KiB. */
export const LONGEST_URL = 14 * 1024;

/** A parsed query: each name at most once, with names and values decoded. */
export type Query = ReadonlyMap<string, string>;

/**
 * Parses a raw query (without `?`) strictly as application/x-www-form-urlencoded in UTF-8. Throws an AppError that names
 * the parameter: `unknown-parameter`, `duplicate-parameter`, or `invalid-parameter` for a bad %-escape or bad UTF-8.
 */
export function parseQuery(
  raw: string,
  known: readonly string[],
  isField: (name: string) => boolean = () => false,
): Query {
  const query = new Map<string, string>();
  if (raw === '') return query;
  for (const pair of raw.split('&')) {
    if (pair === '') continue; // `a=1&` and `&&` hold no parameter
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals), null);
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1), name);
    checkKnown(name, known, isField);
    if (query.has(name)) {
      const detail = `${name} may be given only once; got ${quote(value)} too.`;
      throw parameterError('duplicate-parameter', name, detail);
    }
    query.set(name, value);
  }
  return query;
}

function checkKnown(name: string, known: readonly string[], isField: (name: string) => boolean): void {
  if (known.includes(name) || isField(name)) return;
  const expected = known.length > 0 ? `Its parameters are ${known.join(', ')}.` : 'It has no parameters.';
  const detail = `${quote(name)} is not a parameter of this resource. ${expected}`;
  throw parameterError('unknown-parameter', name, detail);
}

/** The error for a parameter, or for a query that has it. */
export function parameterError(
  code: ProblemCode,
  parameter: string,
  detail: string,
  cause?: unknown,
): AppError {
  return new AppError(code, detail, { parameter, cause });
}

/** Formats a client's text for a message: quoted, escaped, and cut to 80 characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function decode(text: string, parameter: string | null): string {
  // Bytes above 0x7f must be sent as %-escapes. An engine passes raw ones on as latin1, and their meaning is unknown.
  if (/[^\x20-\x7e]/.test(text)) throw malformed(text, parameter);
  if (!/[%+]/.test(text)) return text;
  const value = decoded(text.replaceAll('+', ' '));
  if (value === undefined) throw malformed(text, parameter);
  return value;
}

function malformed(text: string, parameter: string | null): AppError {
  const detail = `${quote(text)} is not percent-encoded UTF-8.`;
  return parameterError('invalid-parameter', parameter ?? text, detail);
}
