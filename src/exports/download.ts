import { AppError } from '../base/errors.ts';
import type { Reply } from '../engine/edge.ts';
import { notModified, STORE_PROBLEMS, type Route } from '../http/route.ts';
import { FileGoneError, type FileStore } from '../store/files.ts';
import { crc32 } from '../pipeline/crc32.ts';
import { CHANGES_HEADER } from '../resources/token/feed-cursor.ts';
import { formatOf, FORMATS } from '../resources/stream/formats/list.ts';
import { ID, LOOK_AGAIN_SECONDS } from './export.ts';
import { isFinal, lose, type CompleteJob, type FinishedFile, type Job } from './job.ts';
import { noSuchExport, type Jobs } from './jobs.ts';
import { resourceOf, shownAs, type ExportSources } from './order.ts';
import { downloadName } from './represent.ts';

/** The compression is part of the file and not a content coding, so it determines the media type. */
const COMPRESSED_TYPES = {
  gzip: 'application/gzip',
  br: 'application/octet-stream', // no media type is registered for brotli files
} as const;

const FILE_HEADERS = [
  'ETag',
  'Cache-Control',
  'Content-Disposition',
  'Accept-Ranges',
  'Repr-Digest',
] as const;
const BYTES = { schema: { type: 'string', format: 'binary' } };
const FILE = Object.fromEntries([
  ...FORMATS.map(
    ({ types: [type], fileSchema }) => [type, fileSchema ? { schema: fileSchema } : BYTES] as const,
  ),
  ...Object.values(COMPRESSED_TYPES).map((type) => [type, BYTES] as const),
]);

/** Sends the file or a range. A whole file ends only with the bytes that were written. A lost file fails its export. */
export function getExportFile(
  path: string,
  { jobs, files, sources }: { jobs: Jobs; files: FileStore; sources: ExportSources },
): Route {
  return {
    method: 'GET',
    path,
    access: 'keyed',
    cost: 'download',
    right: 'export',
    id: 'getExportFile',
    tag: 'Exports',
    summary: 'Download the file of a complete export, or a range of it',
    description: 'A compressed file is sent as it is, without Content-Encoding.',
    parameters: ID,
    headers: ['Range', 'If-Range', 'If-None-Match'],
    answers: {
      200: {
        description: 'The whole file',
        headers: FILE_HEADERS,
        sometimes: ['Changes-From'],
        content: FILE,
      },
      206: {
        description: 'The requested range of the file',
        headers: [...FILE_HEADERS, 'Content-Range'],
        sometimes: ['Changes-From'],
        content: FILE,
      },
      304: notModified('this file'),
    },
    problems: [
      'invalid-url',
      'not-found',
      'export-not-complete',
      'export-file-lost',
      'collection-replaced',
      'invalid-header',
      'precondition-failed',
      'range-not-satisfiable',
      'too-many-streams',
      ...STORE_PROBLEMS,
    ],
    handler: async ({ request, client, parameters: { id = '' } }) => {
      const job = await jobs.find(id, client, request.signal);
      if (job.state !== 'complete') throw notComplete(job);
      await assertShown(job, sources, request.signal);
      const { name, bytes, rows } = job.file;
      request.notes.exported = { resource: job.request.resource, rows };
      if ((await files.size(name)) !== bytes) {
        const { after } = await jobs.change(job.id, lose);
        throw after ? notComplete(after) : noSuchExport(job.id); // removed meanwhile, with its file
      }
      return {
        status: 200,
        headers: headersOf(job),
        body: {
          kind: 'file',
          length: bytes,
          write: async (sink, start, end) => {
            try {
              for await (const chunk of verified(files, job.file, start, end)) {
                const full = sink.write(chunk);
                if (full) await full;
              }
            } catch (error) {
              if (error instanceof FileGoneError) await jobs.change(job.id, lose);
              throw error;
            }
          },
        },
      };
    },
  };
}

/**
 * Throws AppError `collection-replaced` for a file whose rows nobody could read now: their resource is gone, shows another
 * collection, or other fields. The operator may have hidden what the file has.
 */
async function assertShown(
  { request, progress }: CompleteJob,
  sources: ExportSources,
  signal: AbortSignal,
): Promise<void> {
  if (sources.has(request.resource)) {
    const resource = resourceOf(request, sources);
    const { identity = null } = await resource.rows.describe(signal);
    if (identity === progress.identity && shownAs(resource) === (progress.shown ?? 'null')) return;
  }
  throw new AppError(
    'collection-replaced',
    `The resource ${request.resource} is no longer what this export was made of: it is gone, has another collection, or shows other fields. Order another export.`,
  );
}

/**
 * The bytes of a range. Throws FileGoneError before the last bytes of the whole file when their CRC-32 is not the one of
 * the bytes that were written. Of a smaller range only the length can be verified.
 */
async function* verified(
  files: Pick<FileStore, 'read'>,
  { name, bytes, crc32: expected }: FinishedFile,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = start;
  let found = 0;
  for await (const chunk of files.read(name, start, end)) {
    found = crc32(chunk, found);
    at += chunk.length;
    if (start === 0 && at === bytes && found !== expected) throw new FileGoneError(name);
    yield chunk;
  }
}

function headersOf({ id, request, file, progress: { changes } }: CompleteJob): Reply['headers'] {
  const { format, compression } = request;
  const digest = Buffer.from(file.sha256, 'hex').toString('base64');
  return {
    'content-type': compression === 'none' ? formatOf(format).contentType : COMPRESSED_TYPES[compression],
    'content-disposition': `attachment; filename="${downloadName(id, request)}"`,
    'cache-control': 'private, no-transform',
    etag: `"${file.sha256}"`,
    ...(changes !== null && { [CHANGES_HEADER]: changes }),
    'repr-digest': `sha-256=:${digest}:`, // RFC 9530: the digest of the whole file, even with a range
  };
}

function notComplete(job: Job): AppError {
  if (job.state === 'failed' && job.failure.code === 'export-file-lost')
    return new AppError(job.failure.code, job.failure.detail);
  const onItsWay = !isFinal(job);
  const why = job.state === 'failed' ? `: ${job.failure.detail}` : '.';
  return new AppError('export-not-complete', `The export is ${job.state}${why}`, {
    ...(onItsWay && { retrySeconds: LOOK_AGAIN_SECONDS }),
  });
}
