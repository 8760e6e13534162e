import { createRequire } from 'node:module';
import type * as typebox from '@sinclair/typebox';

export type { Static, TSchema } from '@sinclair/typebox';

/** A JSON Schema (2020-12) built with TypeBox. The same schema validates or serializes. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Builds JSON schemas that are also TypeScript types. Validation, serializers and settings use them. Loaded with
 * `require`, because the ES modules are 266 files, which take one second of the start through a loader.
 */
export const { Type } = createRequire(import.meta.url)('@sinclair/typebox') as typeof typebox;

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
