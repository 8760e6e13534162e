import type * as typebox from '@sinclair/typebox';

export type { Static, TSchema } from '@sinclair/typebox';

/** A JSON Schema (2020-12) built with TypeBox. The same schema validates or serializes. */
export type Schema = Readonly<Record<string, unknown>>;

type Options = Readonly<Record<string, unknown>>;

/** Marks a schema of a member that may be absent. JSON does not show it. */
const OPTIONAL = Symbol('optional');
const optional = (schema: object) => ({ ...schema, [OPTIONAL]: true });
const objectOf = (properties: Readonly<Record<string, object>>, options?: Options) => {
  const required = Object.keys(properties).filter((name) => !(OPTIONAL in (properties[name] ?? {})));
  return { ...options, type: 'object', ...(required.length > 0 && { required }), properties };
};
const typed = (type: string) => (options?: Options) => ({ ...options, type });

const builders = {
  Array: (items: Schema, options?: Options) => ({ ...options, type: 'array', items }),
  Boolean: typed('boolean'),
  Integer: typed('integer'),
  Literal: (value: unknown, options?: Options) => ({ ...options, const: value, type: typeof value }),
  Null: typed('null'),
  Object: objectOf,
  Optional: optional,
  Partial: ({ properties }: { properties: Readonly<Record<string, object>> }, options: Options) => {
    const members = Object.entries(properties).map(([name, schema]) => [name, optional(schema)]);
    return objectOf(Object.fromEntries(members) as Readonly<Record<string, object>>, options);
  },
  Record: ({ pattern = '^(.*)$' }: { pattern?: string }, value: Schema, options?: Options) => {
    return { ...options, type: 'object', patternProperties: { [pattern]: value } };
  },
  String: typed('string'),
  Union: (anyOf: readonly Schema[], options?: Options) => ({ ...options, anyOf }),
  Unknown: (options?: Options) => ({ ...options }),
  Unsafe: (schema: Schema) => ({ ...schema }),
};

/** JSON schemas that are also TypeScript types, as of TypeBox, whose 250 files would take a twentieth of a start. */
export const Type = builders as unknown as Pick<typeof typebox.Type, keyof typeof builders>;

/** An object that has no other members than these. `description`: what is expected, as all who read the schema see it. */
export function object<P extends typebox.TProperties>(description: string, members: P): typebox.TObject<P> {
  return Type.Object(members, { additionalProperties: false, description });
}

/** Such an object with a name of its own: see `named`. */
export function namedObject<P extends typebox.TProperties>(
  name: string,
  description: string,
  members: P,
): typebox.TObject<P> {
  return named(name, object(description, members));
}

export function listOf<S extends typebox.TSchema>(description: string, items: S): typebox.TArray<S> {
  return Type.Array(items, { description });
}

export function text(description: string): typebox.TString {
  return Type.String({ description });
}

/** A number of things. */
export function count(description: string): typebox.TInteger {
  return Type.Integer({ minimum: 0, description });
}

export function wordOf<const T extends string>(
  words: readonly T[],
  description = `one of ${words.join(', ')}`,
): typebox.TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: words, description });
}

export function textOrNull(description: string): typebox.TUnsafe<string | null> {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], description });
}

const names = new WeakMap<object, string>();

/** Gives a schema a name of its own in /openapi.json. It is then listed once and referenced by that name. */
export function named<S extends object>(name: string, schema: S): S {
  names.set(schema, name);
  return schema;
}

/** Returns the name that `named` gave. undefined: the schema is written out where it is used. */
export function nameOf(schema: object): string | undefined {
  return names.get(schema);
}
