import type { AppError } from '../../errors.ts';
import { conflict } from '../../input/parameter.ts';
import { parameterError, quote, type Query } from '../../input/query.ts';
import { KEY } from '../../store/bookmark.ts';

/** The operators that the last segment of a name can be. */
const OPERATORS = ['eq', 'gte', 'gt', 'lte', 'lt'] as const;
export type Operator = (typeof OPERATORS)[number];

/**
 * Names of parameters to come, and of those that only some requests have. A field of such a name is asked with `.eq`
 * everywhere. Where a parameter of the name is listed, that is meant.
 */
export const RESERVED: readonly string[] = [
  'follow',
  'since',
  'wait',
  'safe',
  'heartbeat',
  'types',
  'n',
  'columns',
  'where',
  'q',
];

/** What a query asks, each value as the text that the client gave. */
export interface Given {
  /** The parameters of the route. */
  readonly parameters: Query;
  /** Equalities, by path. */
  readonly equals: ReadonlyMap<string, string>;
  /** Bounds, by path. */
  readonly bounds: ReadonlyMap<string, Bounds>;
}

/** The bounds of one path: at most one of each side. */
export interface Bounds {
  readonly low?: Bound;
  readonly high?: Bound;
}

export interface Bound {
  readonly text: string;
  readonly isInclusive: boolean;
}

/**
 * Sorts the parameters of a query into those of the route (`listed`), equalities and bounds of fields. One rule for
 * names: a last segment of `eq`, `gte`, `gt`, `lte` or `lt`, of at least two, is the operator, always; else a listed
 * parameter; else an equality of that path. So `limit.eq=5` asks for a field `limit`. Throws AppError
 * `unknown-parameter` for a reserved name, `duplicate-parameter` and `conflicting-parameters` for fields that are
 * given twice.
 */
export function readGiven(
  pairs: readonly (readonly [name: string, value: string])[],
  listed: ReadonlySet<string>,
): Given {
  const parameters = new Map<string, string>();
  const equals = new Map<string, string>();
  const bounds = new Map<string, Bounds>();
  for (const [name, text] of pairs) {
    const { path, operator } = splitName(name);
    if (operator === undefined && listed.has(name)) parameters.set(name, text);
    else if (operator === undefined && RESERVED.includes(name)) throw reserved(name);
    else if (operator === undefined || operator === 'eq') addEquality(equals, keyOr(path), text, name);
    else addBound(bounds, keyOr(path), operator, text, name);
  }
  return { parameters, equals, bounds };
}

/** The direction and the path of `sort=PATH_asc` or `PATH_desc`. Null when the text ends in neither. */
export function readSort(text: string): { readonly path: string; readonly direction: 1 | -1 } | null {
  const [, path, direction] = /^(.+)_(asc|desc)$/s.exec(text) ?? [];
  if (path === undefined) return null;
  return { path: keyOr(path), direction: direction === 'asc' ? 1 : -1 };
}

/** `id` and `_id` mean the key. */
export function keyOr(path: string): string {
  return path === 'id' ? KEY : path;
}

/** The path as clients spell it: the key is `id`. */
export function shownPath(path: string): string {
  return path === KEY ? 'id' : path;
}

/** A name of a query as a path, and the operator if it ends with one. */
export function splitName(name: string): { readonly path: string; readonly operator?: Operator } {
  const dot = name.lastIndexOf('.');
  const operator = OPERATORS.find((one) => one === name.slice(dot + 1));
  return dot > 0 && operator ? { path: name.slice(0, dot), operator } : { path: name };
}

function addEquality(equals: Map<string, string>, path: string, text: string, name: string): void {
  if (equals.has(path)) throw twice(name, text);
  equals.set(path, text);
}

function addBound(
  bounds: Map<string, Bounds>,
  path: string,
  operator: Exclude<Operator, 'eq'>,
  text: string,
  name: string,
): void {
  const side = operator.startsWith('g') ? 'low' : 'high';
  const given = bounds.get(path) ?? {};
  if (given[side])
    throw conflict(name, `${shownPath(path)} has two ${side === 'low' ? 'lower' : 'upper'} bounds.`);
  bounds.set(path, { ...given, [side]: { text, isInclusive: operator.endsWith('e') } });
}

function twice(name: string, text: string): AppError {
  const detail = `${name} may be given once; it came again as ${quote(text)}.`;
  return parameterError('duplicate-parameter', name, detail);
}

function reserved(name: string): AppError {
  const detail = `${name} is not a parameter here. A field of that name is asked for by ${name}.eq.`;
  return parameterError('unknown-parameter', name, detail);
}
