/** What the page shows of a resource: filters, range and order, as the address behind `#` has them. Needs no browser. */
import { decoded } from '../../base/decoded.ts';
import { textOf, type Json } from './json.ts';
import type { Resource } from './resource.ts';

export interface View {
  readonly resource: Resource;
  /** The texts that paths must equal, as a query gives them. */
  readonly equals: ReadonlyMap<string, string>;
  /** The path that orders the rows, and that a range is of. */
  readonly sort: string;
  readonly direction: 1 | -1;
  /** The bounds of the range, both included. Empty: none. */
  readonly low: string;
  readonly high: string;
}

/** The order by a path, without a range. */
export function orderBy(sort: string): Pick<View, 'sort' | 'direction' | 'low' | 'high'> {
  return { sort, direction: 1, low: '', high: '' };
}

export function wholeOf(resource: Resource): View {
  return { resource, equals: new Map(), ...orderBy('id') };
}

export function reversed(view: View): View {
  return { ...view, direction: view.direction === 1 ? -1 : 1 };
}

/** Names that are parameters of a route, now or later. A field of such a name is asked with `.eq`. */
const PARAMETERS = new Set(
  (
    'limit offset page cursor count sort fields after part consistency at format checkpoints safe header excel locale ' +
    'columns schema json since wait follow field n heartbeat types where q'
  ).split(' '),
);
const OPERATOR = /.\.(eq|gte|gt|lte|lt)$/;

type Parameters = Readonly<Record<string, string | number>>;

/** The parameters of the filters alone, and `others`. */
export function filterQuery({ resource, equals }: View, others: Parameters = {}): URLSearchParams {
  const query = new URLSearchParams();
  for (const [path, text] of equals) {
    const isTaken = PARAMETERS.has(path) || OPERATOR.test(path);
    query.set(parameterFor(resource, isTaken ? `${path}.eq` : path), text);
  }
  for (const [name, value] of Object.entries(others)) query.set(name, String(value));
  return query;
}

/** The parameters of a view: filters, range and order, and `others`. */
export function viewQuery(view: View, others: Parameters = {}): URLSearchParams {
  const { resource, sort, direction, low, high } = view;
  return filterQuery(view, {
    ...(low !== '' && { [parameterFor(resource, `${sort}.gte`)]: low }),
    ...(high !== '' && { [parameterFor(resource, `${sort}.lte`)]: high }),
    ...((sort !== 'id' || direction === -1) && { sort: `${sort}_${direction === 1 ? 'asc' : 'desc'}` }),
    ...others,
  });
}

/** The parameter by which a resource is asked for a path, or for a bound of it. */
function parameterFor({ aliases }: Resource, asked: string): string {
  return aliases?.find((alias) => alias.for === asked)?.name ?? asked;
}

/** A URL of this server. Spaces are %20, which every client reads alike. */
export function urlOf(path: string, query: URLSearchParams): string {
  const text = query.toString().replaceAll('+', '%20');
  return text === '' ? path : `${path}?${text}`;
}

/** Reads a view from the parameters that `viewQuery` writes. Others are left out. */
export function readView(resource: Resource, query: URLSearchParams): View {
  const equals = new Map<string, string>();
  const bounds = new Map<string, { readonly path: string; readonly text: string }>();
  for (const [name, text] of query) {
    const asked = resource.aliases?.find((alias) => alias.name === name)?.for ?? name;
    const [, path = asked, operator] = /^(.+)\.(eq|gte|lte)$/.exec(asked) ?? [];
    if (operator === 'gte' || operator === 'lte') bounds.set(operator, { path, text });
    else if (name !== 'sort') equals.set(path, text);
  }
  const low = bounds.get('gte');
  const high = bounds.get('lte');
  const [, path, direction] = /^(.+)_(asc|desc)$/.exec(query.get('sort') ?? '') ?? [];
  return {
    resource,
    equals,
    sort: path ?? low?.path ?? high?.path ?? 'id',
    direction: direction === 'desc' ? -1 : 1,
    low: low?.text ?? '',
    high: high?.text ?? '',
  };
}

export type Part = 'home' | 'data' | 'proof' | 'streams';

interface Place {
  readonly part: Part;
  /** The name of the resource. Empty: none is named. */
  readonly name: string;
  /** Null: there is no resource of this name. */
  readonly view: View | null;
}

/** Reads `#/`, `#/orders?status=paid`, `#proof/orders?status=paid`, `#proof` or `#streams`. */
export function readPlace(hash: string, resources: readonly Resource[]): Place {
  const [, first, encoded = '', query] = /^#?([^/?]*)\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  const name = decoded(encoded) ?? encoded; // a user may have mistyped it
  const resource = resources.find((one) => one.name === name);
  const view = resource ? readView(resource, new URLSearchParams(query)) : null;
  const isNamed = first === 'proof' || first === 'streams';
  return { part: isNamed ? first : name === '' ? 'home' : 'data', name, view };
}

export function addressOf(part: 'data' | 'proof', view: View): string {
  const path = `#${part === 'data' ? '' : part}/${encodeURIComponent(view.resource.name)}`;
  return urlOf(path, viewQuery(view));
}

/** The rows of a view in words, such as `status is paid, createdAt from 2026-01-01`. Empty: all rows. */
export function wordsOf({ equals, sort, low, high }: View): string {
  return [
    ...[...equals].map(([path, text]) => `${path} is ${shownText(text)}`),
    ...(low === '' ? [] : [`${sort} from ${low}`]),
    ...(high === '' ? [] : [`${sort} to ${high}`]),
  ].join(', ');
}

const PREFIX = /^(str|int|num|dec|oid|date|uuid|bool|null):/;

/** The text of an equality without the prefix that fixes its type. */
export function shownText(text: string): string {
  return text === 'null:' ? 'empty' : text.replace(PREFIX, '') || 'an empty text';
}

/** The text of an equality for a value. `isTwin`: another value looks the same, so the type is written, too. */
export function spelled(value: Json, isTwin = false): string {
  const text = textOf(value);
  if (value === null) return 'null:';
  if (typeof value === 'boolean') return `bool:${text}`;
  if (typeof value === 'string') return isTwin || PREFIX.test(text) ? `str:${text}` : text;
  return isTwin ? `${/^-?\d+$/.test(text) ? 'int' : 'num'}:${text}` : text;
}
