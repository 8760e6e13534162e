import fastJson from 'fast-json-stringify';
import type { Static, TSchema } from '../schema.ts';

/**
 * The precompiled JSON serializer of a schema. The schema is a whitelist: what it does not name is not written. Required
 * fields come first, then all others in the schema's order. Compiled where the schema stands, once, at start.
 */
export function serializerOf<S extends TSchema>(schema: S): (value: Readonly<Static<S>>) => string {
  return fastJson(schema);
}
