import { PROBLEMS } from '../problems.ts';
import { FILES } from '../rows/formats.ts';
import { serializerOf } from '../rows/serializers.ts';
import { Type } from '../schema.ts';
import { EXPORT, EXPORT_BODY, type Export, type ExportOrder } from './export.ts';
import { ITEMS, resourceOf, type ExportRequest, type Failure, type Job } from './job.ts';

const SUFFIXES = { none: '', gzip: '.gz', br: '.br' } as const;

/** The representation of a job for clients. */
export function represent(job: Job): Export {
  const { id, state, request, time, createdAt, estimatedRows, kept } = job;
  const { rows = 0, bytes = 0 } = (job.state === 'complete' ? job.file : kept) ?? {};
  return {
    id,
    state,
    request: shownRequest(request),
    ...(time !== 'undecided' && { consistency: time === 'live' ? time : 'snapshot' }),
    progress: { rows, ...(estimatedRows !== null && { estimatedRows }), bytes },
    createdAt: createdAt.toISOString(),
    ...('finishedAt' in job && {
      finishedAt: job.finishedAt.toISOString(),
      expiresAt: job.expiresAt.toISOString(),
    }),
    ...(job.state === 'complete' && {
      file: {
        url: `/exports/${id}/file`,
        name: downloadName(id, request),
        bytes,
        rows,
        sha256: job.file.sha256,
        crc32: job.file.crc32.toString(16).padStart(8, '0'),
      },
    }),
    ...(job.state === 'complete' && job.changes && { changes: job.changes.cursor }),
    ...(job.state === 'failed' && { problem: problemOf(job.failure) }),
  };
}

/** A request as clients see it: with the names and values of its body. */
function shownRequest(request: ExportRequest): Export['request'] {
  if (!('filters' in request)) {
    const shown: ExportOrder & { scope?: unknown } = { ...request };
    delete shown.scope;
    return shown;
  }
  const { resource, filters, sort, fields, format, compression, safe, columns, schema } = request;
  return {
    resource,
    ...Object.fromEntries(filters),
    sort,
    ...(fields && { fields }),
    format,
    compression,
    ...(safe !== undefined && { safe }),
    ...(columns !== undefined && { columns }),
    ...(schema && { schema }),
  };
}

/**
 * The file name of a download. It includes the suffix of the compression, since the answer has no content
 * coding.
 */
export function downloadName(
  id: string,
  request: Pick<ExportRequest, 'resource' | 'format' | 'compression'>,
): string {
  const { format, compression } = request;
  return `${resourceOf(request)}-${id.slice(0, 8)}.${FILES[format].extension}${SUFFIXES[compression]}`;
}

function problemOf({ code, detail }: Failure): NonNullable<Export['problem']> {
  const { title, status } = PROBLEMS[code];
  return { type: `/problems/${code}`, title, status, detail, code };
}

const BOUND_TEXT = Type.Optional(Type.String());
/** The schema of an export of items with the bounds of the price as strings. Numbers would lose digits. */
const ITEMS_TEXT = Type.Object({
  ...EXPORT.properties,
  request: Type.Composite([
    Type.Omit(EXPORT_BODY, ['min_price', 'max_price']),
    Type.Object({ min_price: BOUND_TEXT, max_price: BOUND_TEXT }),
  ]),
});
const serializeOfItems = serializerOf(ITEMS_TEXT);
/** The schema of an export of another resource, whose request may have any names. */
const serializeOfResource = serializerOf(Type.Object({ ...EXPORT.properties, request: Type.Any() }));

/** The JSON text of an export. The bounds of the price keep all their digits. */
export function exportToJson(value: Export): string {
  if (!isOfItems(value)) return serializeOfResource(value);
  // An unescaped `":` follows only a property name, so no value can be mistaken for a bound.
  return serializeOfItems(value).replace(/"(m(?:in|ax)_price)":"([^"]*)"/g, '"$1":$2');
}

function isOfItems(value: Export): value is Export & { readonly request: ExportOrder } {
  return resourceOf(value.request) === ITEMS;
}

/** The JSON text of a list of exports. */
export function exportsToJson(values: readonly Export[]): string {
  return `{"data":[${values.map(exportToJson).join(',')}]}`;
}
