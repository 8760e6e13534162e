import { PROBLEMS } from '../base/problems.ts';
import type { Form } from '../resources/query/form.ts';
import { formatOf } from '../resources/stream/formats/list.ts';
import { FLAGS, type Export } from './export.ts';
import type { ExportRequest, Failure, Job } from './job.ts';
import type { ExportSources } from './order.ts';

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
    resource,
    ...Object.fromEntries(texts),
    ...(fields !== undefined && { fields: fields.split(',') }),
    format,
    compression,
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

/**
 * The JSON text of an export, for clients. `form`: of its resource, if that is still served. Its parameters that are numbers
 * are written as such, with all their digits, which a double would lose.
 */
export function exportToJson(job: Job, form: Form | undefined): string {
  const text = JSON.stringify(represent(job));
  const numbers = (form?.parameters ?? []).filter(({ schema }) => schema.type === 'number');
  if (numbers.length === 0) return text;
  // An unescaped `":` follows only a property name, so no value can be mistaken for a number.
  const names = numbers.map(({ name }) => name).join('|');
  return text.replace(new RegExp(`"(${names})":"([^"]*)"`, 'g'), '"$1":$2');
}

export function exportsToJson(jobs: readonly Job[], sources: ExportSources): string {
  const texts = jobs.map((job) => exportToJson(job, sources.get(job.request.resource)?.form));
  return `{"data":[${texts.join(',')}]}`;
}
