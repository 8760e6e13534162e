import { Type } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import { EXPORT, type Export } from './export.ts';

const BOUND_TEXT = Type.Optional(Type.String());
/** The schema of an export with the bounds of the price as strings. Numbers would lose digits. */
const EXPORT_TEXT = Type.Object({
  ...EXPORT.properties,
  request: Type.Composite([
    Type.Omit(EXPORT.properties.request, ['min_price', 'max_price']),
    Type.Object({ min_price: BOUND_TEXT, max_price: BOUND_TEXT }),
  ]),
});
const serialize = serializerOf(EXPORT_TEXT);

/** The JSON text of an export. The bounds of the price keep all their digits. */
export function exportToJson(value: Export): string {
  // An unescaped `":` follows only a property name, so no value can be mistaken for a bound.
  return serialize(value).replace(/"(m(?:in|ax)_price)":"([^"]*)"/g, '"$1":$2');
}

/** The JSON text of a list of exports. */
export function exportsToJson(values: readonly Export[]): string {
  return `{"data":[${values.map(exportToJson).join(',')}]}`;
}
