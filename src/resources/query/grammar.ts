import type { AppError } from '../../base/errors.ts';
import { conflict } from '../../input/parameter.ts';
import { parameterError, quote } from '../../input/query.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Plan } from '../../store/store.ts';

/** The operators that the last segment of a name can be. */
export const OPERATORS = ['eq', 'gte', 'gt', 'lte', 'lt'] as const;
type Operator = (typeof OPERATORS)[number];

/** Parameters of all routes of rows, and of some to come. Every route takes `.eq` for fields of these names. */
const PARAMETERS: ReadonlySet<string> = new Set([
  ...['sort', 'fields', 'limit', 'offset', 'page', 'cursor', 'count', 'after', 'part', 'consistency', 'at'],
  ...[
    'format',
    'checkpoints',
    'safe',
    'header',
    'excel',
    'locale',
    'columns',
    'schema',
    'json',
    'follow',
    'since',
    'wait',
    'n',
    'field',
  ],
  ...['heartbeat', 'types', 'where', 'q'],
]);

/** Whether a name that its route does not list asks for a field. */
export function isField(name: string): boolean {
  return !PARAMETERS.has(name);
}

/** What a query asks of fields, each value as the text that the client gave. */
export interface Filters {
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
 * A last segment of at least two is the operator if it names one, else the name is a parameter, else an equality. So
 * `limit.eq=5` asks for a field `limit`. AppErrors `duplicate-parameter`, `conflicting-parameters`.
 */
export function readGiven(pairs: Iterable<readonly [name: string, value: string]>): Filters {
  const equals = new Map<string, string>();
  const bounds = new Map<string, Bounds>();
  for (const [name, text] of pairs) {
    const { path, operator } = splitName(name);
    if (operator === undefined && !isField(name)) continue;
    if (operator === undefined || operator === 'eq') addEquality(equals, keyOr(path), text, name);
    else addBound(bounds, keyOr(path), operator, text, name);
  }
  return { equals, bounds };
}

/** The direction and the path of `sort=PATH_asc` or `PATH_desc`. Null when the text ends in neither. */
export function readSort(text: string): { readonly path: string; readonly direction: 1 | -1 } | null {
  const [, path, direction] = /^(.+)_(asc|desc)$/s.exec(text) ?? [];
  if (path === undefined) return null;
  return { path: keyOr(path), direction: direction === 'asc' ? 1 : -1 };
}

/** An order as the parameter `sort` writes it. */
export function sortText({ sort, direction }: Pick<Plan, 'sort' | 'direction'>): string {
  return `${shownPath(sort)}_${direction === 1 ? 'asc' : 'desc'}`;
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
