import type { Request } from '../engine/edge.ts';
import { AppError } from '../errors.ts';
import { readJsonBody, type JsonBody } from './body-json.ts';
import { pointer } from './json-scan.ts';
import type { Parameter } from './parameter.ts';
import { checkKnown, type Query } from './query.ts';
import { invalidBody } from './validate.ts';

/** The media types of the content of a QUERY. */
export const QUERY_TYPES: readonly string[] = ['application/json'];
/** The largest content of a QUERY, in bytes. It has room for a cursor of 12 KiB and 100 paths of fields. */
export const MAX_QUERY_BYTES = 64 * 1024;

/** The parameters that a QUERY may have. */
export interface QueryForm {
  readonly parameters: readonly Parameter<unknown>[];
  /** Whether a name that is not listed asks for a field of the rows. */
  readonly isField?: ((name: string) => boolean) | undefined;
  /** The text that stands for a JSON value of a field: a number, `true`, `false` or `null` in its JSON form. */
  readonly spell?: ((json: string) => string) | undefined;
}

/**
 * Reads the content of a QUERY (RFC 10008): a JSON object with the names of a query string. Each value becomes the text
 * that it has in a query string, so both are checked by the same rules. Throws AppError `unsupported-media-type`,
 * `body-too-large`, `malformed-json`, `invalid-body` for a value that stands for no text, and `unknown-parameter` for
 * other names and for a query in the URL.
 */
export async function readQueryBody(request: Request, form: QueryForm): Promise<Query> {
  if (request.query !== '')
    throw new AppError('unknown-parameter', 'QUERY takes its parameters from its content, not from the URL.');
  const body = await readJsonBody(request, QUERY_TYPES, MAX_QUERY_BYTES);
  const { value, faults } = body;
  if (faults.length > 0) throw invalidBody(faults);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidBody([{ pointer: '', detail: 'expected an object with the parameters' }]);
  const known = form.parameters.map(({ name }) => name);
  return new Map(
    Object.entries(value).map(([name, given]: [string, unknown]) => {
      checkKnown(name, known, form.isField);
      return [name, textOf(name, given, form, body)];
    }),
  );
}

/** The text of a value in a query string. Throws AppError `invalid-body` when there is none. */
function textOf(name: string, value: unknown, form: QueryForm, { numbers }: JsonBody): string {
  if (typeof value === 'string') return value;
  const place = pointer([name]);
  const isField = form.isField?.(name) ?? false;
  const list = form.parameters.find((one) => one.name === name && one.schema.type === 'array');
  if (Array.isArray(value) && list && !isField) return joined(value, place);
  const json = numbers.get(place) ?? (typeof value === 'boolean' || value === null ? String(value) : null);
  if (json !== null && isField && form.spell) return form.spell(json);
  if (json !== null && value !== null) return json;
  const expected = `a string, number${isField ? ', boolean or null' : ' or boolean'}${list ? ', or an array of strings' : ''}`;
  throw invalidBody([{ pointer: place, detail: `expected ${expected}` }]);
}

function joined(values: readonly unknown[], place: string): string {
  const faults = [...values.entries()]
    .filter(([, value]) => typeof value !== 'string' || value.includes(','))
    .map(([n]) => ({ pointer: `${place}/${n}`, detail: 'expected a string without a comma' }));
  if (faults.length > 0) throw invalidBody(faults);
  return values.join(',');
}
