import { AppError } from '../base/errors.ts';
import type { FileBody, Reply } from '../engine/edge.ts';
import { documented, oneOf } from '../input/parameter.ts';
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

/** What a download needs of the server. */
interface DownloadOptions {
  readonly jobs: Jobs;
  readonly files: FileStore;
  readonly sources: ExportSources;
  /** How long a link to a file is valid, where files have links. null: the server streams all files itself. */
  readonly linkSeconds: number | null;
}

const PROXY = documented(
  oneOf('proxy', ['true', 'false']),
  'Whether the server streams the file itself, also where it would answer with a link to its object store.',
  { fallback: 'false' },
);

const DECLARED = {
  method: 'GET',
  access: 'keyed',
  cost: 'download',
  right: 'export',
  id: 'getExportFile',
  tag: 'Exports',
  summary: 'Download the file of a complete export, or a range of it',
  description:
    'A compressed file is sent as it is, without Content-Encoding. Where files lie in an object store (setting FILES), the answer is a link to it that is valid for EXPORT_LINK_TTL. Clients must not send the key there.',
  parameters: ID,
  query: [PROXY],
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
    307: {
      description: 'The file, or the range, is at this URL of an object store for a while',
      headers: ['Location', 'ETag', 'Cache-Control', 'Repr-Digest'],
      sometimes: ['Changes-From'],
    },
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
    'insufficient-storage',
    'too-many-streams',
    ...STORE_PROBLEMS,
  ],
} satisfies Partial<Route>;

/** Sends the file or a range, or a link to it. A whole file ends only with the bytes that were written. A lost file fails its export. */
export function getExportFile(path: string, options: DownloadOptions): Route {
  const { jobs, sources } = options;
  return {
    ...DECLARED,
    path,
    handler: async ({ request, client, query, parameters: { id = '' } }) => {
      const job = await jobs.find(id, client, request.signal);
      if (job.state !== 'complete') throw notComplete(job);
      await assertShown(job, sources, request.signal);
      request.notes.exported = { resource: job.request.resource, rows: job.file.rows };
      await assertStored(job, options);
      return {
        status: 200,
        headers: headersOf(job),
        body: bodyOf(job, options, PROXY.read(query) === 'true'),
      };
    },
  };
}

/** Throws the AppError of an export whose file is missing or has another length, which fails it. */
async function assertStored(
  { id, file: { name, bytes } }: CompleteJob,
  { jobs, files }: DownloadOptions,
): Promise<void> {
  if ((await files.size(name)) === bytes) return;
  const { after } = await jobs.change(id, lose);
  throw after ? notComplete(after) : noSuchExport(id); // removed meanwhile, with its file
}

function bodyOf(
  job: CompleteJob,
  { jobs, files, linkSeconds }: DownloadOptions,
  isStreamed: boolean,
): FileBody {
  const { id, file } = job;
  const seconds = isStreamed ? null : linkSeconds;
  const link = files.link?.bind(files);
  return {
    kind: 'file',
    length: file.bytes,
    ...(link && seconds !== null && { elsewhere: () => link(file.name, { seconds, headers: inLink(job) }) }),
    write: async (sink, start, end) => {
      try {
        for await (const chunk of verified(files, file, start, end)) {
          const full = sink.write(chunk);
          if (full) await full;
        }
      } catch (error) {
        if (error instanceof FileGoneError) await jobs.change(id, lose);
        throw error;
      }
    },
  };
}

const IN_LINKS: ReadonlySet<string> = new Set(['content-type', 'content-disposition', 'cache-control']);

/** The headers that an object store sends because a link says so. */
function inLink(job: CompleteJob): Reply['headers'] {
  return Object.fromEntries(Object.entries(headersOf(job)).filter(([name]) => IN_LINKS.has(name)));
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
