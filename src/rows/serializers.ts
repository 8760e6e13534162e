import fastJson from 'fast-json-stringify';
import type { Static, TSchema } from '../schema.ts';

/**
 * The precompiled JSON serializer of a schema. The schema is a whitelist: fields that it does not name are not written.
 * Required fields come first, then all others in the schema's order. A serializer is compiled with its first value:
 * all of them take a tenth of a start.
 */
export function serializerOf<S extends TSchema>(schema: S): (value: Readonly<Static<S>>) => string {
  let serialize: ((value: Readonly<Static<S>>) => string) | undefined;
  return (value) => (serialize ??= fastJson(schema) as (value: unknown) => string)(value);
}
