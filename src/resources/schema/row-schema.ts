import type { Schema } from '../../base/schema.ts';
import { KEY } from '../../store/bookmark.ts';
import { keyOr } from '../query/grammar.ts';
import type { Kind } from '../query/kinds.ts';
import type { Resource } from '../query/resource.ts';
import type { RowShape, Shape, ValueKind } from './shape.ts';

const DECIMAL: Schema = { type: 'number', format: 'decimal' };
const NUMBER: Schema = { type: 'number' };
const TEXT: Schema = { type: 'string' };
const OBJECT_ID: Schema = { type: 'string', pattern: '^[0-9a-f]{24}$' };
const UUID: Schema = { type: 'string', format: 'uuid' };
const DATE: Schema = { type: 'string', format: 'date-time' };
const BOOLEAN: Schema = { type: 'boolean' };
/** An object with any members, such as those of Extended JSON. */
const OPEN: Schema = { type: 'object', additionalProperties: true };

/** What values of declared kinds are in JSON. */
const DECLARED: Readonly<Record<Kind, Schema>> = {
  string: TEXT,
  number: NUMBER,
  decimal: DECIMAL,
  objectid: OBJECT_ID,
  date: DATE,
  uuid: UUID,
  boolean: BOOLEAN,
};

/** What values of found kinds are in JSON, and the kinds whose schemas hold for these, too. */
const FOUND: Readonly<Record<ValueKind, readonly [schema: Schema, within: readonly ValueKind[]]>> = {
  text: [TEXT, []],
  objectId: [OBJECT_ID, ['text']],
  uuid: [UUID, ['text']],
  base64: [{ type: 'string', contentEncoding: 'base64' }, ['text']],
  date: [DATE, ['text']],
  boolean: [BOOLEAN, []],
  integer: [{ type: 'integer', format: 'int64' }, ['double', 'decimal']],
  decimal: [DECIMAL, ['double']],
  double: [NUMBER, []],
  extended: [OPEN, []],
  null: [{ type: 'null' }, []],
};

const DESCRIPTION =
  'A row with all its fields or the requested ones; the first member is its key. Fields that the operator declared are of their kinds. All others are as a sample of the rows has them: a row may lack a field, have further ones, or have a value of another kind.';

type DeclaredKinds = ReadonlyMap<string, Kind>;

/**
 * The JSON Schema of the rows of a resource, as a client sees them. `x-resource` names the resource, because a document may
 * show only streams of it.
 */
export function rowSchema(
  { name, kinds, shown }: Pick<Resource, 'name' | 'kinds' | 'shown'>,
  look: RowShape,
): Schema {
  const open = [...kinds].filter(([path]) => shown.leavesWhole(path));
  const declared = new Map(open.map(([path, kind]) => [keyOr(path), kind]));
  const key = schemaOf(look.key, KEY, declared);
  const isOwnId = look.withOwnId > 0;
  const isMixed = isOwnId && look.withOwnId < look.rows; // then `id` is the key of rows without such a field
  const properties = new Map([[isOwnId ? KEY : 'id', key]]);
  if (isMixed) properties.set('id', {});
  for (const [field, shape] of look.fields)
    if (field !== 'id' || !isMixed) properties.set(field, schemaOf(shape, field, declared));
  for (const [path, kind] of declared)
    if (path !== KEY && !isFound(look.fields, path)) addDeclared(properties, path.split('.'), DECLARED[kind]);
  return {
    type: 'object',
    description: DESCRIPTION,
    'x-resource': name,
    ...(look.rows > 0 && !isMixed && { required: [isOwnId ? KEY : 'id'] }),
    properties: Object.fromEntries(properties),
    additionalProperties: true,
  };
}

/** The schema of the values at a path. Arrays on the way are no part of a path. */
function schemaOf(shape: Shape, path: string, declared: DeclaredKinds): Schema {
  const { kinds, members, items } = shape;
  const kind = declared.get(path);
  const isAny = members === null || kinds.has('extended');
  const found = [...kinds].filter((one) => !(one === 'extended' && members !== undefined));
  const plain = found.filter((one) => !FOUND[one][1].some((other) => kinds.has(other)));
  const values = plain.filter((one) => one !== 'null' && (kind === undefined || one === 'extended'));
  const isDeclared = kind !== undefined && (found.some((one) => one !== 'null') || (!members && !items));
  return anyOf([
    ...(isDeclared ? [DECLARED[kind]] : []),
    ...values.map((one) => FOUND[one][0]),
    ...(members !== undefined ? [isAny ? OPEN : documentOf(members, path, declared)] : []),
    ...(items ? [{ type: 'array', items: schemaOf(items, path, declared) }] : []),
    ...(kinds.has('null') ? [FOUND.null[0]] : []),
  ]);
}

function documentOf(members: ReadonlyMap<string, Shape>, path: string, declared: DeclaredKinds): Schema {
  const all = [...members].map(([name, shape]) => [name, schemaOf(shape, `${path}.${name}`, declared)]);
  return { type: 'object', properties: Object.fromEntries(all) as Schema };
}

/** A schema for what any of these holds for. Of scalars that only differ in `type`, one whose `type` is a list. */
function anyOf(schemas: readonly Schema[]): Schema {
  const [first = {}, ...others] = schemas;
  if (others.length === 0) return first;
  const types = schemas.map(({ type }) => type);
  const isNull = others.length === 1 && types[1] === 'null' && types[0] !== 'object' && types[0] !== 'array';
  if (isNull) return { ...first, type: types };
  return schemas.every((one) => Object.keys(one).length === 1) ? { type: types } : { anyOf: schemas };
}

/** Whether the sample has something at a path, in members or in names with dots. */
function isFound(members: ReadonlyMap<string, Shape>, path: string): boolean {
  return [...members].some(([name, shape]) => {
    if (name === path) return true;
    return path.startsWith(`${name}.`) && isFoundBelow(shape, path.slice(name.length + 1));
  });
}

function isFoundBelow({ members, items }: Shape, path: string): boolean {
  if (members === null || (items && isFoundBelow(items, path))) return true;
  return members !== undefined && isFound(members, path);
}

/** Adds a declared path that the sample does not have. A place that has values of other kinds stays as it is. */
function addDeclared(
  properties: Map<string, Schema>,
  [name = '', ...rest]: readonly string[],
  leaf: Schema,
): void {
  const known = properties.get(name) ?? (rest.length === 0 ? leaf : { type: 'object' });
  if (rest.length > 0 && known.type !== 'object') return;
  const below = new Map(Object.entries((known.properties ?? {}) as Record<string, Schema>));
  if (rest.length > 0) addDeclared(below, rest, leaf);
  properties.set(name, rest.length === 0 ? known : { ...known, properties: Object.fromEntries(below) });
}
