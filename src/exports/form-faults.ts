import { formatOfType, TEXT_FORMATS, type StreamType, type TextFormat } from '../rows/formats.ts';
import { AppError, type BodyFault } from '../errors.ts';
import { quote } from '../input/query.ts';
import { MAX_KEY_BYTES } from '../items/query.ts';
import { pathFault } from '../rows/selection.ts';
import type { ExportBody } from './export.ts';

/** The faults of an order that its schema cannot express: those of the form that the rows are to have. */
export function formFaults({
  fields = [],
  safe,
  format = 'ndjson',
}: Pick<ExportBody, 'fields' | 'safe' | 'format'>): readonly BodyFault[] {
  const faults: BodyFault[] = [];
  for (const [n, path] of fields.entries()) {
    const place = `/fields/${n}`;
    if (Buffer.byteLength(path) > MAX_KEY_BYTES) faults.push(tooLong(place));
    const fault = pathFault(path);
    if (fault)
      faults.push({
        pointer: place,
        detail: `expected the name or path of a field; ${quote(path)} ${fault}`,
      });
  }
  if (safe !== undefined && format !== 'csv')
    faults.push({ pointer: '/safe', detail: `expected only with format csv; the format is ${format}` });
  return faults;
}

/** The fault of a text that is too long at this place of a body. */
export function tooLong(pointer: string): BodyFault {
  return { pointer, detail: `expected at most ${MAX_KEY_BYTES} bytes of UTF-8` };
}

/** The format of an export that a stream of this type asks for. AppError `conflicting-parameters` where exports have none. */
export function exportFormat(type: StreamType): TextFormat {
  const format = TEXT_FORMATS.find((known) => known === formatOfType(type));
  if (format) return format;
  throw new AppError('conflicting-parameters', `An export is ${TEXT_FORMATS.join(', ')}, not ${type}.`, {
    parameter: 'format',
  });
}
