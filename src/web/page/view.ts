/** What the page shows of a resource: its filters, range and order. It is the address of the page behind `#`. */
import { sortKept } from './allowed-queries.ts';
import { parameterFor, type Resource } from './resource.ts';

export interface View {
  /** The texts that paths must equal, as a query gives them. */
  readonly equals: ReadonlyMap<string, string>;
  /** The path that orders the rows, and that a range is of. */
  readonly sort: string;
  readonly direction: 1 | -1;
  /** The bounds of the range, both included. Empty: none. */
  readonly low: string;
  readonly high: string;
}

export const WHOLE: View = { equals: new Map(), sort: 'id', direction: 1, low: '', high: '' };

/** Names that are parameters of a route, now or later. A field of such a name is asked with `.eq`. */
const PARAMETERS = new Set(
  (
    'limit offset page cursor count sort fields after part consistency at format checkpoints safe header ' +
    'columns schema since wait follow field n heartbeat types where q'
  ).split(' '),
);
const OPERATOR = /.\.(eq|gte|gt|lte|lt)$/;

/** The parameter of an equality. */
function equalName(path: string): string {
  return PARAMETERS.has(path) || OPERATOR.test(path) ? `${path}.eq` : path;
}

/** The parameters of the filters alone. */
export function filterQuery(resource: Resource, { equals }: Pick<View, 'equals'>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [path, text] of equals) query.set(parameterFor(resource, equalName(path)), text);
  return query;
}

/** The parameters of a view: filters, range and order. */
export function viewQuery(resource: Resource, view: View): URLSearchParams {
  const query = filterQuery(resource, view);
  if (view.low !== '') query.set(parameterFor(resource, `${view.sort}.gte`), view.low);
  if (view.high !== '') query.set(parameterFor(resource, `${view.sort}.lte`), view.high);
  if (view.sort !== 'id' || view.direction === -1) query.set('sort', sortText(view));
  return query;
}

export function sortText({ sort, direction }: Pick<View, 'sort' | 'direction'>): string {
  return `${sort}_${direction === 1 ? 'asc' : 'desc'}`;
}

/** The same rows in the opposite order. */
export function reversed(view: View): View {
  return { ...view, direction: view.direction === 1 ? -1 : 1 };
}

/** Reads a view from the parameters that `viewQuery` writes. Others are left out. */
export function readView({ aliases, queries }: Resource, query: URLSearchParams): View {
  const equals = new Map<string, string>();
  const bounds = new Map<string, { readonly path: string; readonly text: string }>();
  for (const [name, text] of query) {
    const asked = aliases?.find((alias) => alias.name === name)?.for ?? name;
    const [, path = asked, operator] = /^(.+)\.(eq|gte|lte)$/.exec(asked) ?? [];
    if (operator === 'gte' || operator === 'lte') bounds.set(operator, { path, text });
    else if (name !== 'sort') equals.set(path, text);
  }
  const range = bounds.get('gte') ?? bounds.get('lte');
  const [, path, direction] = /^(.+)_(asc|desc)$/.exec(query.get('sort') ?? '') ?? [];
  return {
    equals,
    sort: path ?? range?.path ?? sortKept(queries, [...equals.keys()], 'id'), // as the server orders them
    direction: direction === 'desc' ? -1 : 1,
    low: bounds.get('gte')?.text ?? '',
    high: bounds.get('lte')?.text ?? '',
  };
}

/** The rows of a view in words, such as `status is paid, createdAt from 2026-01-01`. Empty: all rows. */
export function wordsOf({ equals, sort, low, high }: View): string {
  return [
    ...[...equals].map(([path, text]) => `${path} is ${shownText(text)}`),
    ...(low === '' ? [] : [`${sort} from ${low}`]),
    ...(high === '' ? [] : [`${sort} to ${high}`]),
  ].join(', ');
}

/** The text of an equality without the prefix that fixes its type. */
export function shownText(text: string): string {
  if (text === 'null:') return 'empty';
  return text.replace(/^(str|int|num|dec|oid|date|uuid|bool):/, '') || 'an empty text';
}
