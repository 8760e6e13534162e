import { PROBLEMS } from '../problems.ts';
import { ITEM_FORM } from '../resources/items.ts';
import { formatOf } from '../resources/stream/formats/list.ts';
import { FLAGS, type Export } from './export.ts';
import { ITEMS, type ExportRequest, type Failure, type Job } from './job.ts';

const SUFFIXES = { none: '', gzip: '.gz', br: '.br' } as const;

function represent(job: Job): Export {
  const { id, state, request, createdAt } = job;
  const { time, estimatedRows, changes, rows, bytes } = job.progress;
  return {
    id,
    state,
    request: shownRequest(request),
    progress: { rows, bytes, ...(estimatedRows !== null && { estimatedRows }) },
    createdAt: createdAt.toISOString(),
    ...(time !== 'undecided' && { consistency: time }),
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
      ...(changes !== null && { changes }),
    }),
    ...(job.state === 'failed' && { problem: problemOf(job.failure) }),
  };
}

/** A request as clients see it: with the members of its body. */
function shownRequest({ resource, query, format, compression }: ExportRequest): Export['request'] {
  const { fields, ...all } = Object.fromEntries(new URLSearchParams(query));
  const texts = Object.entries(all).filter(([name]) => !FLAGS.includes(name));
  const flags = Object.entries(all).filter(([name]) => FLAGS.includes(name));
  return {
    ...(resource !== ITEMS && { resource }),
    ...Object.fromEntries(texts),
    ...(fields !== undefined && { fields: fields.split(',') }),
    ...{ format, compression },
    ...Object.fromEntries(flags.map(([name, text]) => [name, text === 'true'])),
  };
}

/** The name of a downloaded file, with the suffix of the compression, since the answer has no content coding. */
export function downloadName(
  id: string,
  request: Pick<ExportRequest, 'resource' | 'format' | 'compression'>,
): string {
  const { format, compression } = request;
  return `${request.resource}-${id.slice(-8)}.${formatOf(format).extension}${SUFFIXES[compression]}`;
}

function problemOf({ code, detail }: Failure): NonNullable<Export['problem']> {
  const { title, status } = PROBLEMS[code];
  return { type: `/problems/${code}`, title, status, detail, code };
}

/** The JSON text of an export, for clients. Numbers keep all their digits, which a double would lose. */
export function exportToJson(job: Job): string {
  const text = JSON.stringify(represent(job));
  // An unescaped `":` follows only a property name, so no value can be mistaken for a number.
  return job.request.resource === ITEMS ? text.replace(NUMBERS, '"$1":$2') : text;
}

/** The members of a request for items that are numbers, as texts. */
const NUMBERS = new RegExp(
  `"(${ITEM_FORM.parameters.flatMap(({ name, schema }) => (schema.type === 'number' ? [name] : [])).join('|')})":"([^"]*)"`,
  'g',
);

export function exportsToJson(jobs: readonly Job[]): string {
  return `{"data":[${jobs.map(exportToJson).join(',')}]}`;
}
