import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv';
import type { Static, TSchema } from '../base/schema.ts';
import { AppError, type BodyFault } from '../base/errors.ts';
import type { JsonBody } from './body-json.ts';
import { pointer } from './json-scan.ts';
import { quote } from './query.ts';

/** The part of a schema that `verbose` errors carry beside the fault. Clients are shown its `description`. */
interface SchemaDescription {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaDescription>>;
  readonly propertyNames?: SchemaDescription;
}

/** The most characters of a pointer that the message shows. `errors` has the whole pointer. */
const LONGEST_PLACE = 80;

let loaded: Ajv | null = null;

/** The library, loaded with the first body: it takes a tenth of a start. A test of /openapi.json checks the schemas. */
function ajv(): Ajv {
  const library = createRequire(import.meta.url)('ajv') as { readonly Ajv: typeof Ajv };
  const options = {
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    meta: false,
    validateSchema: false,
    strictNumbers: false, // JSON.parse makes Infinity of a number whose digits are kept beside it
  };
  return (loaded ??= new library.Ajv(options));
}

/** Compiled with the first body. The check throws AppError `invalid-body` with all faults, each with its place. */
export function bodyCheck<S extends TSchema>(schema: S): (body: JsonBody) => Static<S> {
  let validate: ValidateFunction<Static<S>> | undefined;
  return ({ value, faults }) => {
    validate ??= ajv().compile<Static<S>>(schema);
    if (validate(value) && faults.length === 0) return value;
    throw invalidBody([...faults, ...(validate.errors ?? []).flatMap(faultsOf)]);
  };
}

/** The error of a body with these faults, at least one: of several at one place, the first. */
export function invalidBody(faults: readonly BodyFault[]): AppError {
  const places = new Set<string>();
  const errors = faults.filter((fault) => !places.has(fault.pointer) && places.add(fault.pointer));
  const [first] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more, see errors)` : '';
  const place = first?.pointer === '' ? 'The whole body' : first?.pointer.slice(0, LONGEST_PLACE);
  return new AppError('invalid-body', `${place ?? ''}: ${first?.detail ?? ''}${more}.`, { errors });
}

/** What is at fault in a text that is no body of a request, but a `name`, without what was found. */
export function faultsIn(error: unknown, name: string): readonly BodyFault[] {
  if (!(error instanceof AppError)) throw error;
  const all = error.errors ?? [{ pointer: '', detail: error.message }];
  return all.map(({ pointer: place, detail }) => ({
    pointer: place,
    detail: detail.replace('The request body', name).replace(/; got .*$/s, ''),
  }));
}

function faultsOf(error: ErrorObject): BodyFault[] {
  const schema = (error.parentSchema ?? {}) as SchemaDescription;
  const at = (name: unknown) => error.instancePath + pointer([String(name)]);
  if (error.propertyName !== undefined) return [expected(at(error.propertyName), schema, error.data)];
  switch (error.keyword) {
    case 'propertyNames': // only repeats that the name above is at fault
      return [];
    case 'required': {
      const name = String(error.params.missingProperty);
      return [{ pointer: at(name), detail: `missing; expected ${described(schema.properties?.[name])}` }];
    }
    case 'additionalProperties': {
      const known = Object.keys(schema.properties ?? {}).join(', ');
      const detail = `unknown field; expected only ${known}`;
      return [{ pointer: at(error.params.additionalProperty), detail }];
    }
    default:
      return [expected(error.instancePath, schema, error.data)];
  }
}

function expected(place: string, schema: SchemaDescription, data: unknown): BodyFault {
  return { pointer: place, detail: `expected ${described(schema)}; got ${shown(data)}` };
}

function described(schema: SchemaDescription | undefined): string {
  if (schema?.description === undefined) throw new TypeError('a schema without a description');
  return schema.description;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return 'an array';
  return value === null || typeof value !== 'object' ? String(value) : 'an object';
}
