import type { AppError } from '../../base/errors.ts';
import { conflict, invalid } from '../../input/parameter.ts';
import { parameterError, quote } from '../../input/query.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Plan } from '../../store/store.ts';

/** The operators that the last segment of a name can be. */
export const OPERATORS = ['eq', 'in', 'gte', 'gt', 'lte', 'lt'] as const;
type Operator = (typeof OPERATORS)[number];

/** The most values of one field that a query names. */
const MOST_VALUES = 100;

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
  /** Several values of one path, which is in none of the others. */
  readonly among?: AmongTexts;
}

/** Values of a path as texts, each once, in the order in which the client gave them. */
interface AmongTexts {
  readonly path: string;
  readonly texts: readonly string[];
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
 * `limit.eq=5` asks for a field `limit`. AppErrors `duplicate-parameter`, `conflicting-parameters`, `invalid-parameter`.
 */
export function readGiven(pairs: Iterable<readonly [name: string, value: string]>): Filters {
  const equals = new Map<string, string>();
  const bounds = new Map<string, Bounds>();
  let among: AmongTexts | undefined;
  for (const [name, text] of pairs) {
    const { path, operator } = splitName(name);
    if (operator === undefined && !isField(name)) continue;
    if (operator === 'in') among = amongOf(keyOr(path), text, name, among);
    else if (operator === undefined || operator === 'eq') addEquality(equals, keyOr(path), text, name);
    else addBound(bounds, keyOr(path), operator, text, name);
  }
  if (!among) return { equals, bounds };
  const name = inName(among.path);
  if (equals.has(among.path))
    throw conflict(name, `Give one of ${shownPath(among.path)} and ${name}, not both.`);
  return { equals, bounds, among };
}

/** The parameter that asks for several values of a path. */
export function inName(path: string): string {
  return `${shownPath(path)}.in`;
}

/** The order of several values, and of the rows of each: `sort=PATH.in,OTHER_asc` is `OTHER_asc` among these. Else null. */
export function orderAmong(path: string, among: Pick<AmongTexts, 'path'>): string | null {
  const head = `${inName(among.path)},`;
  return path.startsWith(head) ? keyOr(path.slice(head.length)) : null;
}

/** The direction and the path of `sort=PATH_asc` or `PATH_desc`. Null when the text ends in neither. */
export function readSort(text: string): { readonly path: string; readonly direction: 1 | -1 } | null {
  const [, path, direction] = /^(.+)_(asc|desc)$/s.exec(text) ?? [];
  if (path === undefined) return null;
  return { path: keyOr(path), direction: direction === 'asc' ? 1 : -1 };
}

/** An order as the parameter `sort` writes it. */
export function sortText({ sort, direction, among }: Pick<Plan, 'sort' | 'direction' | 'among'>): string {
  const head = among ? `${inName(among.path)},` : '';
  return `${head}${shownPath(sort)}_${direction === 1 ? 'asc' : 'desc'}`;
}

/** The order of a plan, where it is none that a client expects without naming one: that of ids. */
export function unexpectedOrder(plan: Pick<Plan, 'sort' | 'direction' | 'among'>): string | undefined {
  return plan.sort === KEY && !plan.among ? undefined : sortText(plan);
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

function amongOf(path: string, text: string, name: string, before: AmongTexts | undefined): AmongTexts {
  if (before)
    throw conflict(name, `Only one field can have several values; ${inName(before.path)} has them, too.`);
  const texts = [...new Set(textsIn(text, name))];
  if (texts.length > MOST_VALUES)
    throw invalid(name, `${name} may have ${MOST_VALUES} different values at most; got ${texts.length}.`);
  return { path, texts };
}

/** The values in `a,b`, or in the JSON array `["a","b"]`, whose texts may have commas, or be empty. */
function textsIn(given: string, name: string): readonly string[] {
  const texts = given.startsWith('[') ? textsInArray(given) : given.split(',');
  if (!texts || texts.length === 0)
    throw invalid(
      name,
      `${name} must be values separated by commas, or a JSON array of texts; got ${quote(given)}.`,
    );
  if (given.startsWith('[') || !texts.includes('')) return texts;
  const detail = `${name} has an empty value; got ${quote(given)}. An empty text is written in a JSON array: ["a",""].`;
  throw invalid(name, detail);
}

/** Null: it is no array of texts. */
function textsInArray(given: string): readonly string[] | null {
  try {
    const read: unknown = JSON.parse(given);
    return Array.isArray(read) && read.every((one) => typeof one === 'string') ? read : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function addBound(
  bounds: Map<string, Bounds>,
  path: string,
  operator: Exclude<Operator, 'eq' | 'in'>,
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
