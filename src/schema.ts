import { createRequire } from 'node:module';
import type * as typebox from '@sinclair/typebox';

export type { Static, TSchema } from '@sinclair/typebox';

/** A JSON Schema (2020-12): one of TypeBox, the same that validates or serializes. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Builds JSON schemas that are TypeScript types, too: validation, serializers and settings are made of them. Required,
 * because its ES modules are 266 files, which take a second of a start through a loader.
 */
export const { Type } = createRequire(import.meta.url)('@sinclair/typebox') as typeof typebox;

const names = new WeakMap<object, string>();

/** Gives a schema a name of its own in /openapi.json, where it then stands by reference. */
export function named<S extends object>(name: string, schema: S): S {
  names.set(schema, name);
  return schema;
}

/** The name that `named` gave; undefined: the schema stands where it is used. */
export function nameOf(schema: object): string | undefined {
  return names.get(schema);
}
