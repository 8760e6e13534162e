import { AppError } from '../errors.ts';
import { readJsonBody } from '../http/body-json.ts';
import type { Reply, Request } from '../http/edge.ts';
import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { prefers } from '../http/prefer.ts';
import { parseQuery, quote } from '../http/query.ts';
import { empty, json } from '../http/reply.ts';
import type { Handler, Route } from '../http/router.ts';
import { serializers } from '../serialize/serializers.ts';
import { FileGoneError, type FileStore } from '../store/files.ts';
import type { Exporter } from './exporter.ts';
import { cancel, filesOf, isFinal, type Complete, type ExportRequest, type Job } from './job.ts';
import type { Jobs } from './jobs.ts';
import { DELETE_EXPORT, GET_EXPORT, GET_EXPORT_FILE, LIST_EXPORTS, ORDER_EXPORT } from './operations.ts';
import { downloadName, represent } from './represent.ts';
import { asynchronousRequest, requestOfBody } from './request.ts';

export interface ExportRoutesOptions {
  readonly jobs: Jobs;
  readonly files: FileStore;
  readonly exporter: Pick<Exporter, 'ordered' | 'dropped'>;
  /** Who asks, and whether a key is needed to ask at all. */
  readonly clientOf: (request: Request) => { readonly name: string; readonly hasKey: boolean };
  /** Wraps the handler of a file, so that downloads are counted among the streams. */
  readonly streaming: (handler: Handler) => Handler;
  readonly now: () => Date;
  /** How long a finished export is kept. Milliseconds. */
  readonly ttlMs: number;
}

const PATH = '/exports';
const BODY_TYPES = ['application/json'];
const NOT_STORED = { 'cache-control': 'no-store' };
/** What Retry-After says to whoever ordered an export. Seconds. */
const LOOK_AGAIN = '1';

/** What the bytes of a file are. Its compression is no coding of the answer, so it decides the type. */
const TYPES = {
  none: { ndjson: 'application/x-ndjson', json: 'application/json', csv: 'text/csv; charset=utf-8' },
  gzip: 'application/gzip',
  br: 'application/octet-stream', // nothing is registered for a file of brotli
} as const;

const acceptable = mediaTypeNegotiator(['application/json']);

export function exportRoutes(options: ExportRoutesOptions): readonly Route[] {
  const one = `${PATH}/{id}`;
  return [
    { method: 'GET', path: PATH, doc: LIST_EXPORTS, handler: listExports(options) },
    { method: 'POST', path: PATH, doc: ORDER_EXPORT, handler: postExport(options), accepts: BODY_TYPES },
    { method: 'GET', path: one, doc: GET_EXPORT, handler: getExport(options) },
    { method: 'DELETE', path: one, doc: DELETE_EXPORT, handler: deleteExport(options) },
    {
      method: 'GET',
      path: `${one}/file`,
      doc: GET_EXPORT_FILE,
      handler: options.streaming(getFile(options)),
    },
  ];
}

/** A stream's handler that orders an export instead when the client prefers not to wait. */
export function orExport(options: ExportRoutesOptions, handler: Handler): Handler {
  const requestOf = asynchronousRequest();
  return async (request, parameters) => {
    const wanted = request.method === 'GET' ? requestOf(request) : null;
    if (!wanted) return handler(request, parameters);
    const reply = await order(options, request, wanted);
    return { ...reply, headers: { ...reply.headers, 'preference-applied': 'respond-async' } };
  };
}

function listExports({ jobs, clientOf }: ExportRoutesOptions): Handler {
  return async (request) => {
    acceptable(request);
    parseQuery(request.query, []);
    const own = await jobs.listOf(clientOf(request).name, request.signal);
    return json(200, serializers.exports({ data: own.map(represent) }), NOT_STORED);
  };
}

function postExport(options: ExportRoutesOptions): Handler {
  return async (request) => {
    acceptable(request);
    parseQuery(request.query, []);
    return order(options, request, requestOfBody(await readJsonBody(request, BODY_TYPES)));
  };
}

async function order(
  { jobs, exporter, clientOf }: ExportRoutesOptions,
  request: Request,
  wanted: ExportRequest,
): Promise<Reply> {
  const job = await jobs.create(clientOf(request).name, wanted, request.signal);
  await exporter.ordered(job.id);
  return json(202, serializers.export(represent(job)), {
    ...NOT_STORED,
    location: `${PATH}/${job.id}`,
    'retry-after': LOOK_AGAIN,
  });
}

function getExport(options: ExportRoutesOptions): Handler {
  return async (request, { id = '' }) => {
    acceptable(request);
    parseQuery(request.query, []);
    return json(200, serializers.export(represent(await find(options, request, id))), NOT_STORED);
  };
}

/** Cancels what is on its way; removes what is finished, with its file. */
function deleteExport(options: ExportRoutesOptions): Handler {
  const { jobs, files, exporter, now, ttlMs } = options;
  return async (request, { id = '' }) => {
    acceptable(request);
    parseQuery(request.query, []);
    await find(options, request, id);
    const finishedAt = now();
    const final = { finishedAt, expiresAt: new Date(finishedAt.getTime() + ttlMs) };
    const { before, after } = await jobs.change(id, (job) => (isFinal(job) ? null : cancel(job, final)));
    if (!before) throw noSuchExport(id);
    exporter.dropped(id);
    for (const name of filesOf(before)) await files.remove(name);
    return after ? json(200, serializers.export(represent(after)), NOT_STORED) : removed(request, id);
  };
}

function removed(request: Request, id: string): Reply {
  if (prefers(request, 'return=minimal'))
    return empty(204, { ...NOT_STORED, 'preference-applied': 'return=minimal' });
  return json(200, serializers.removedExport({ id, deleted: true }), NOT_STORED);
}

/** GET /exports/{id}/file: the file, or a range of it. */
function getFile(options: ExportRoutesOptions): Handler {
  const { files } = options;
  return async (request, { id = '' }) => {
    parseQuery(request.query, []);
    const job = await find(options, request, id);
    if (job.state !== 'complete') throw notComplete(job);
    const { name, bytes } = job.file;
    if ((await files.size(name)) !== bytes) {
      await find(options, request, id); // it may have been removed meanwhile, and its file with it
      throw new FileGoneError(name);
    }
    return {
      status: 200,
      headers: headersOf(job),
      body: {
        kind: 'file',
        length: bytes,
        write: async (sink, start, end) => {
          for await (const chunk of files.read(name, start, end)) {
            const full = sink.write(chunk);
            if (full) await full;
          }
        },
      },
    };
  };
}

function headersOf({ id, request, file }: Complete): Reply['headers'] {
  const { format, compression } = request;
  const digest = Buffer.from(file.sha256, 'hex').toString('base64');
  return {
    'content-type': compression === 'none' ? TYPES.none[format] : TYPES[compression],
    'content-disposition': `attachment; filename="${downloadName(id, request)}"`,
    'cache-control': 'private, no-transform',
    etag: `"${file.sha256}"`,
    'repr-digest': `sha-256=:${digest}:`, // RFC 9530: of the whole, also beside a range
  };
}

/** AppError `not-found`: there is none, its time is over, or it is another client's where clients have keys. */
async function find({ jobs, clientOf }: ExportRoutesOptions, request: Request, id: string): Promise<Job> {
  const job = await jobs.get(id, request.signal);
  const { name, hasKey } = clientOf(request);
  if (job && (!hasKey || job.client === name)) return job;
  throw noSuchExport(id);
}

function noSuchExport(id: string): AppError {
  return new AppError('not-found', `No export has the id ${quote(id)}.`);
}

function notComplete(job: Job): AppError {
  const onItsWay = !isFinal(job);
  const why = job.state === 'failed' ? `: ${job.failure.detail}` : '.';
  return new AppError('export-not-complete', `The export is ${job.state}${why}`, {
    headers: onItsWay ? { 'retry-after': LOOK_AGAIN } : {},
  });
}
