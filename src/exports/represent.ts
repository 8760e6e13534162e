import { PROBLEMS } from '../problems.ts';
import { FILES } from '../rows/formats.ts';
import { serializerOf } from '../rows/serializers.ts';
import { Type } from '../schema.ts';
import { EXPORT, EXPORT_BODY, type Export } from './export.ts';
import { ITEMS, type ExportRequest, type Failure, type Job } from './job.ts';

const SUFFIXES = { none: '', gzip: '.gz', br: '.br' } as const;

/** The representation of a job for clients. */
export function represent(job: Job): Export {
  const { id, state, request, createdAt } = job;
  const { time, estimatedRows, changes, rows, bytes } = job.progress;
  return {
    id,
    state,
    request: shownRequest(request),
    ...(time !== 'undecided' && { consistency: time }),
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
    ...(job.state === 'complete' && changes !== null && { changes }),
    ...(job.state === 'failed' && { problem: problemOf(job.failure) }),
  };
}

/** A request as clients see it: with the members of its body. */
function shownRequest({ resource, query, format, compression }: ExportRequest): Export['request'] {
  const { fields, safe, ...texts } = Object.fromEntries(new URLSearchParams(query));
  return {
    ...(resource !== ITEMS && { resource }),
    ...texts,
    ...(fields !== undefined && { fields: fields.split(',') }),
    ...(safe !== undefined && { safe: safe === 'true' }),
    ...{ format, compression },
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
  return `${request.resource}-${id.slice(-8)}.${FILES[format].extension}${SUFFIXES[compression]}`;
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
  if ('resource' in value.request) return serializeOfResource(value);
  // An unescaped `":` follows only a property name, so no value can be mistaken for a bound.
  return serializeOfItems(value).replace(/"(m(?:in|ax)_price)":"([^"]*)"/g, '"$1":$2');
}

/** The JSON text of a list of exports. */
export function exportsToJson(values: readonly Export[]): string {
  return `{"data":[${values.map(exportToJson).join(',')}]}`;
}
