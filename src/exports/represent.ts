import { PROBLEMS } from '../base/problems.ts';
import type { Form } from '../resources/query/form.ts';
import { formatOf } from '../resources/stream/formats/list.ts';
import { FLAGS, type Export } from './export.ts';
import type { ExportRequest, Failure, Job } from './job.ts';
import type { ExportSources } from './order.ts';

const SUFFIXES = { none: '', gzip: '.gz', br: '.br' } as const;

function represent(job: Job, mount: string): Export {
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
        url: `${mount}/exports/${id}/file`,
        name: downloadName(id, request),
        bytes,
        rows,
        sha256: job.file.sha256,
        crc32: job.file.crc32.toString(16).padStart(8, '0'),
      },
      ...(changes !== null && { changes }),
    }),
    ...(job.state === 'failed' && { problem: problemOf(job.failure, mount) }),
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

function problemOf({ code, detail }: Failure, mount: string): NonNullable<Export['problem']> {
  const { title, status } = PROBLEMS[code];
  return { type: `${mount}/problems/${code}`, title, status, detail, code };
}

/**
 * The JSON text of an export, for clients. `form`: of its resource, if that is still served. Its parameters that are numbers
 * are written as such, with all their digits, which a double would lose. `mount` begins its URLs.
 */
export function exportToJson(job: Job, form: Form | undefined, mount: string): string {
  const text = JSON.stringify(represent(job, mount));
  const numbers = (form?.parameters ?? []).filter(({ schema }) => schema.type === 'number');
  if (numbers.length === 0) return text;
  // An unescaped `":` follows only a property name, so no value can be mistaken for a number.
  const names = numbers.map(({ name }) => name).join('|');
  return text.replace(new RegExp(`"(${names})":"([^"]*)"`, 'g'), '"$1":$2');
}

export function exportsToJson(jobs: readonly Job[], sources: ExportSources, mount: string): string {
  const texts = jobs.map((job) => exportToJson(job, sources.get(job.request.resource)?.form, mount));
  return `{"data":[${texts.join(',')}]}`;
}
