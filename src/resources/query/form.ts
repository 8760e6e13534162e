import { documented, parameter, paths, type Parameter } from '../../input/parameter.ts';
import { named, Type } from '../../base/schema.ts';
import { pathFault } from '../../rows/selection.ts';
import { KEY } from '../../store/bookmark.ts';
import type { RowsDocs } from '../route-docs.ts';
import { isField, readSort, splitName } from './grammar.ts';

const MAX_FIELDS = 100;
const MAX_PATH_BYTES = 1024;

export interface Order {
  readonly path: string;
  readonly direction: 1 | -1;
}

/** How a resource is asked and documented, and what its tables begin with. */
export interface Form {
  /** The parameters that choose, order and pick from rows: `sort`, `fields`, and those that stand for fields. */
  readonly parameters: readonly Parameter<unknown>[];
  readonly sort: Parameter<Order>;
  readonly fields: Parameter<readonly string[]>;
  /** The only parameters that ask for fields. Absent: every name that the route does not list asks for one. */
  readonly closed?: readonly Alias[];
  /** Where every name asks for a field: names that ask for others than their own. */
  readonly aliases?: readonly Alias[];
  /** The columns that every table begins with, the first of them `id`. */
  readonly columns: readonly string[];
  readonly docs: RowsDocs;
}

/** A parameter that stands for another one: `min_price` for `price.gte`. */
export interface Alias {
  readonly parameter: Parameter<string>;
  /** A name as grammar.ts reads it: a path, or a path and an operator. */
  readonly to: string;
  /** Stands before the text, and fixes its kind. */
  readonly prefix?: string;
}

export const sortParameter = documented(
  parameter(
    'sort',
    'a path and _asc or _desc, such as createdAt_desc; id_asc is the order of ids',
    { type: 'string', pattern: '^.+_(asc|desc)$' },
    (given) => readSort(given) ?? undefined,
  ),
  'The order of the rows: `PATH_asc` or `PATH_desc`. Rows with equal values are ordered by id in the same direction. Without it: the path of the range, if there is one, else id.',
);
export const fieldsParameter = documented(
  paths('fields', MAX_FIELDS, MAX_PATH_BYTES),
  'Return only these fields, separated by commas. `a.b` is the member `b` of `a`, or of each element when `a` is an array. The key is always included.',
);

/** A row of any collection: its key first, then all its fields unchanged. */
const rowCalled = (name: string) =>
  named(
    name,
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'a row with all its fields or the requested ones; the first member, `id` or `_id`, is its key',
      },
    ),
  );

/**
 * The form of a resource that can be asked by every field that its indexes have. `aliases`: the names that stand for others.
 * Throws RangeError for one that cannot be.
 */
export function openForm(name: string, aliases: Readonly<Record<string, string>> = {}): Form {
  const id = (verb: string) => `${verb}_${slugOf(name)}`;
  const row = id('Row');
  return {
    parameters: [sortParameter, fieldsParameter],
    sort: sortParameter,
    fields: fieldsParameter,
    columns: ['id'],
    aliases: Object.entries(aliases).map(([alias, to]) => aliasOf(alias, to, aliases)),
    docs: {
      tag: 'Resources',
      noun: { one: `row of ${name}`, many: `rows of ${name}` },
      row: { name: row, plural: 'rows', schema: rowCalled(row) },
      ids: {
        list: id('list'),
        stream: id('stream'),
        changes: id('changes'),
        partitions: id('partition'),
        values: id('values'),
        get: id('get'),
      },
      list: {
        summary: `List rows of ${name}`,
        description:
          'Returns a page of rows. Each parameter that is not listed is a filter: the path of a field, with `.gte`, `.gt`, `.lte` or `.lt` behind it for a range. Only combinations that an index answers are allowed.',
      },
      examples: {},
    },
  };
}

function aliasOf(alias: string, to: string, aliases: Readonly<Record<string, string>>): Alias {
  const fault = pathFault(alias) ?? pathFault(to);
  const refuse = (reason: string) => {
    throw new RangeError(`the alias ${JSON.stringify(alias)} ${reason}`);
  };
  if (fault !== undefined) refuse(`or what it stands for ${fault}`);
  if (!isField(alias) || splitName(alias).operator !== undefined)
    refuse('is the name of a parameter of the server, or ends in an operator');
  if (alias === 'id' || alias === KEY) refuse('is the name of the key');
  if (Object.hasOwn(aliases, splitName(to).path)) refuse('stands for an alias; name the field');
  if (to === alias) refuse('stands for itself');
  const named = parameter(alias, 'a value', { type: 'string' }, (text) => text);
  return { parameter: documented(named, `The same as \`${to}\`.`), to };
}

/** A name as generated clients can have it in the name of a function, different for every resource. */
function slugOf(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, (one) => `_${one.charCodeAt(0).toString(16)}_`);
}
