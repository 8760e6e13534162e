import { PROBLEMS } from '../problems.ts';
import { serializerOf } from '../rows/serializers.ts';
import { Type } from '../schema.ts';
import { EXPORT, type Export } from './export.ts';
import type { ExportRequest, Failure, Job } from './job.ts';

const SUFFIXES = { none: '', gzip: '.gz', br: '.br' } as const;

/** The representation of a job for clients. */
export function represent(job: Job): Export {
  const { id, state, request, time, createdAt, estimatedRows, kept } = job;
  const { rows = 0, bytes = 0 } = (job.state === 'complete' ? job.file : kept) ?? {};
  return {
    id,
    state,
    request,
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
    ...(job.state === 'failed' && { problem: problemOf(job.failure) }),
  };
}

/**
 * The file name of a download. It includes the suffix of the compression, since the answer has no content
 * coding.
 */
export function downloadName(
  id: string,
  { format, compression }: Pick<ExportRequest, 'format' | 'compression'>,
): string {
  return `items-${id.slice(0, 8)}.${format}${SUFFIXES[compression]}`;
}

function problemOf({ code, detail }: Failure): NonNullable<Export['problem']> {
  const { title, status } = PROBLEMS[code];
  return { type: `/problems/${code}`, title, status, detail, code };
}

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
