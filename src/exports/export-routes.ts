import type { Reply, Request } from '../engine/edge.ts';
import { removed } from '../http/prefer.ts';
import { refusalOf } from '../http/permit.ts';
import { json, NOT_STORED } from '../http/reply.ts';
import {
  BODY_PROBLEMS,
  JSON_TYPE,
  jsonAnswer,
  removedWithoutBody,
  route,
  STORE_PROBLEMS,
  type Answer,
  type Route,
} from '../http/route.ts';
import type { Client } from '../access/admission.ts';
import type { FileStore } from '../store/files.ts';
import { documented, integer } from '../input/parameter.ts';
import { getExportFile } from './download.ts';
import { EXPORT, EXPORT_LIST, ID, LOOK_AGAIN_SECONDS, REMOVED_EXPORT } from './export.ts';
import type { Exporter } from './exporter.ts';
import { cancel, finalAt, isFinal, type ExportRequest, type Job } from './job.ts';
import { noSuchExport, type Jobs } from './jobs.ts';
import { resourceFor } from '../resources/query/scope.ts';
import type { Resource } from '../resources/query/resource.ts';
import { PLAN_PROBLEMS } from '../resources/resource-routes.ts';
import { traceparentOf } from '../telemetry/request-spans.ts';
import { removeLeftovers } from './file.ts';
import { exportsToJson, exportToJson } from './represent.ts';
import {
  asynchronousRequest,
  exportSources,
  orderSchema,
  requestOf,
  sourcesFor,
  type ExportSources,
} from './order.ts';

export interface ExportOptions {
  readonly jobs: Jobs;
  readonly files: FileStore;
  readonly exporter: Pick<Exporter, 'offer' | 'dropped'>;
  readonly now: () => Date;
  /** How long a finished export is kept, in milliseconds. */
  readonly ttlMs: number;
  /** How long a link to a file is valid, where files have links. null: the server streams all files itself. */
  readonly linkSeconds: number | null;
  /** Whether an export keeps the trace of its order, for the spans of its attempts. */
  readonly isTraced: boolean;
}

const PATH = '/exports';
const ONE = `${PATH}/{id}`;

/** What all routes of exports share that answer in JSON, and what the routes of one export share. */
const SHARED = { access: 'keyed', right: 'export', tag: 'Exports', produces: [JSON_TYPE] } as const;
const OF_ONE = { ...SHARED, path: ONE, parameters: ID } as const;

const WAIT = documented(
  integer('wait', 0, 60),
  "Seconds to wait for the end of the export. The answer comes when the export has ended, at the latest after this time, with the state that it then has. A request that waits takes one of the client's streams.",
  { fallback: 0 },
);

const ORDERED: Answer = jsonAnswer('The created export, queued or running', EXPORT, [
  'Cache-Control',
  'Location',
  'Retry-After',
]);

/** The routes of exports of these sets. */
export function exportRoutes(options: ExportOptions, sources: ExportSources) {
  return {
    list: listExports(options, sources),
    order: orderExport(options, sources),
    get: getExport(options, sources),
    delete: deleteExport(options, sources),
    file: getExportFile(`${ONE}/file`, { ...options, sources }),
  } satisfies Record<string, Route>;
}

/** A stream's route that orders an export instead when the request carries `Prefer: respond-async`. */
export function orExport(stream: Route, resource: Resource, options: ExportOptions): Route {
  const sources = exportSources([{ resource }]);
  return {
    ...stream,
    headers: [...(stream.headers ?? []), 'Prefer'],
    answers: {
      202: {
        ...ORDERED,
        description: 'With `Prefer: respond-async`: the server created an export of the matching rows',
      },
      ...stream.answers,
    },
    problems: [...(stream.problems ?? []), 'too-many-exports', 'insufficient-storage'],
    instead: async (input) => {
      // A preference that cannot be met is ignored (RFC 7240, 2): a key without the right gets the stream.
      if (refusalOf(input.client, SHARED)) return null;
      const wanted = asynchronousRequest(input, resourceFor(resource, input.client));
      if (!wanted) return null;
      const reply = await order(options, input.request, input.client, wanted, sources);
      return { ...reply, headers: { ...reply.headers, 'preference-applied': 'respond-async' } };
    },
  };
}

function listExports({ jobs }: ExportOptions, sources: ExportSources): Route {
  return {
    ...SHARED,
    method: 'GET',
    path: PATH,
    cost: 'page',
    id: 'listExports',
    summary: 'List exports',
    answers: { 200: jsonAnswer('The exports of the client, newest first', EXPORT_LIST, ['Cache-Control']) },
    problems: STORE_PROBLEMS,
    handler: async ({ request, client }) => {
      const own = await jobs.listOf(client.owner, request.signal);
      return json(200, exportsToJson(own, sources, request.notes.mount), NOT_STORED);
    },
  };
}

function orderExport(options: ExportOptions, sources: ExportSources): Route {
  const [name] = sources.keys();
  return route({
    ...SHARED,
    method: 'POST',
    path: PATH,
    cost: 'write',
    id: 'orderExport',
    summary: 'Create an export',
    description:
      'The server writes the matching rows to a file in the background. Request the export, with `wait`, until its state is `complete`, `failed` or `cancelled`.',
    body: {
      types: [JSON_TYPE],
      schema: orderSchema(sources),
      example: { ...(name !== undefined && { resource: name }), format: 'csv', compression: 'gzip' },
    },
    answers: { 202: ORDERED },
    problems: [
      ...BODY_PROBLEMS,
      ...([...sources.values()].some(({ form }) => !form.closed) ? PLAN_PROBLEMS : []),
      'too-many-exports',
      'insufficient-storage',
      ...STORE_PROBLEMS,
    ],
    handler: async ({ request, client, json: read }) => {
      const body = await read();
      const wanted = () => requestOf(body, sourcesFor(client, sources), request.signal);
      return order(options, request, client, wanted, sources);
    },
  });
}

function getExport({ jobs }: ExportOptions, sources: ExportSources): Route {
  return {
    ...OF_ONE,
    method: 'GET',
    cost: 'page',
    id: 'getExport',
    summary: 'Get the state and progress of an export',
    query: [WAIT],
    answers: { 200: jsonAnswer('The export', EXPORT, ['Cache-Control']) },
    problems: ['invalid-url', 'not-found', 'too-many-streams', ...STORE_PROBLEMS],
    handler: async ({ request, client, query, idle, parameters: { id = '' } }) => {
      const job = await jobs.find(id, client, request.signal);
      const seconds = WAIT.read(query) ?? 0;
      if (seconds === 0 || isFinal(job)) return shown(job, sources, request);
      await idle(() => jobs.ends.wait(id, 1000 * seconds, request.signal));
      return shown(await jobs.find(id, client, request.signal), sources, request);
    },
  };
}

function deleteExport(options: ExportOptions, sources: ExportSources): Route {
  const { jobs, exporter, now, ttlMs } = options;
  return {
    ...OF_ONE,
    method: 'DELETE',
    cost: 'write',
    id: 'deleteExport',
    summary: 'Cancel an export, or delete a finished one',
    headers: ['Prefer'],
    answers: {
      200: jsonAnswer(
        'The export was cancelled, or it was deleted with its file',
        { anyOf: [EXPORT, REMOVED_EXPORT] },
        ['Cache-Control'],
      ),
      204: removedWithoutBody('The export was cancelled or deleted'),
    },
    problems: ['invalid-url', 'not-found', 'insufficient-storage', ...STORE_PROBLEMS],
    handler: async ({ request, client, parameters: { id = '' } }) => {
      await jobs.find(id, client, request.signal);
      const { before, after } = await jobs.change(id, (job) =>
        isFinal(job) ? null : cancel(job, finalAt(now(), ttlMs)),
      );
      if (!before) throw noSuchExport(id);
      exporter.dropped(id);
      await removeLeftovers(id, options);
      return after ? shown(after, sources, request) : removed(request, id);
    },
  };
}

function shown(job: Job, sources: ExportSources, { notes: { mount } }: Request): Reply {
  return json(200, exportToJson(job, sources.get(job.request.resource)?.form, mount), NOT_STORED);
}

async function order(
  { jobs, exporter, isTraced }: ExportOptions,
  request: Request,
  client: Client,
  wanted: () => Promise<ExportRequest>,
  sources: ExportSources,
): Promise<Reply> {
  const traceparent = isTraced ? traceparentOf(request) : undefined;
  const read = async () => ({ ...(await wanted()), ...(traceparent !== undefined && { traceparent }) });
  const job = await jobs.create(client.owner, read, request.signal);
  request.notes.exported = { resource: job.request.resource, rows: 0 };
  await exporter.offer(job.id);
  const { mount } = request.notes;
  return json(202, exportToJson(job, sources.get(job.request.resource)?.form, mount), {
    ...NOT_STORED,
    location: `${PATH}/${job.id}`,
    'retry-after': String(LOOK_AGAIN_SECONDS),
  });
}
