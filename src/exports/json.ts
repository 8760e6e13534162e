import { Type } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import { EXPORT, type Export } from './export.ts';

const BOUND_TEXT = Type.Optional(Type.String());
/** An export whose bounds of the price are texts: as numbers they would lose digits. */
const EXPORT_TEXT = Type.Composite([
  Type.Omit(EXPORT, ['request']),
  Type.Object({
    request: Type.Composite([
      Type.Omit(EXPORT.properties.request, ['min_price', 'max_price']),
      Type.Object({ min_price: BOUND_TEXT, max_price: BOUND_TEXT }),
    ]),
  }),
]);
const serialize = serializerOf(EXPORT_TEXT);

/** The JSON of an export. */
export function exportToJson(value: Export): string {
  // Only a name is followed by an unescaped `":`, so no value can be taken for a bound.
  return serialize(value).replace(/"(m(?:in|ax)_price)":"([^"]*)"/g, '"$1":$2');
}

/** The JSON of any number of exports. */
export function exportsToJson(values: readonly Export[]): string {
  return `{"data":[${values.map(exportToJson).join(',')}]}`;
}
