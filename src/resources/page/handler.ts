import type { Reply, Request, StreamBody } from '../../engine/edge.ts';
import { bytes } from '../../http/reply.ts';
import { JSON_TYPE, jsonAnswer, notModified, type Route } from '../../http/route.ts';
import type { ProblemCode } from '../../base/problems.ts';
import { fingerprint } from '../../rows/fingerprint.ts';
import type { Transcoder } from '../../rows/rows.ts';
import { orRelease, type ReadBatch } from '../../store/batch.ts';
import { chain } from '../../pipeline/chain.ts';
import type { Count, From, RowReader } from '../../store/store.ts';
import { pump } from '../../pipeline/pump.ts';
import { collect } from './body.ts';
import { rowBehind } from '../token/cursor.ts';
import { fittingRows, PAGE, PAGE_HEAD, pageInfo, pageLinks, pageTail, sortValueTooLong } from './page.ts';
import type { PageEnd } from './page.ts';
import { pageParameters, pageQuery, type PageQuery } from './parameters.ts';
import { resourceFor } from '../query/scope.ts';
import { readPlan } from '../query/read-plan.ts';
import type { Resource } from '../query/resource.ts';
import { routeOf, type RouteDocs, type RouteOptions } from '../route-docs.ts';
import { cursorMismatch } from '../token/token.ts';
import { listOf, namedObject } from '../../base/schema.ts';

/** Rows of a page up to this size are one answer with an ETag. Larger pages are streamed. Bytes of BSON. */
const PAGE_BYTES = 4 * 1024 * 1024;

type PageOptions = Pick<RouteOptions, 'transcoder' | 'limits' | 'cacheControl'>;

/** The problems that any page can answer with. */
const PAGE_PROBLEMS: readonly ProblemCode[] = [
  'conflicting-parameters',
  'offset-too-deep',
  'invalid-cursor',
  'cursor-mismatch',
  'invalid-header',
  'precondition-failed',
  'sort-value-too-long',
];

/** The GET route of a paged collection: one batch in the page envelope. `counts`: whether its rows can be counted. */
export function pageRoute(
  docs: RouteDocs<'list'>,
  whole: Resource,
  counts: boolean,
  options: PageOptions,
): Route {
  const { row, list, parameters, examples } = docs;
  const page = namedObject(`${row.name}Page`, `a page of ${row.plural}`, {
    data: listOf(`the ${row.plural} of the page`, row.schema),
    page: PAGE,
  });
  return {
    ...routeOf(docs, 'list', PAGE_PROBLEMS),
    ...list,
    cost: 'page',
    right: 'read',
    query: pageParameters(options.limits, parameters, counts),
    headers: ['If-None-Match'],
    produces: [JSON_TYPE],
    answers: {
      200: {
        // A page of many megabytes is streamed, and its end is not known when its head is sent.
        sometimes: ['ETag', 'Link'],
        ...jsonAnswer('The page', page, ['Cache-Control'], examples.list),
      },
      304: notModified('this page'),
    },
    handler: pageHandler(whole, options),
  };
}

function pageHandler(whole: Resource, { transcoder, limits, cacheControl }: PageOptions): Route['handler'] {
  const readQuery = pageQuery(limits);
  return async ({ request, query: parameters, type, client }) => {
    const resource = resourceFor(whole, client);
    const { rows } = resource;
    const asked = readQuery(parameters, resource);
    const plan = await readPlan(parameters, resource, request.signal, asked.cursor);
    const query: PageQuery = { plan, ...asked };
    const total = query.count && (await rows.count(query.plan, query.count, request.signal));
    const read = await rows.read(
      query.plan,
      pageFrom(query),
      { rows: query.limit, bytes: PAGE_BYTES },
      request.signal,
    );
    const headers = { 'content-type': type, 'cache-control': cacheControl };
    const first = fittingRows(read, query);
    if (!first) return orRelease(read, () => Promise.reject(sortValueTooLong(read)));
    if (first === read && read.more && read.rows < query.limit)
      return largePage(read, total, query, headers, rows, transcoder, request);

    request.notes.rows = first.rows;
    const info = pageInfo(query, first, total);
    const encoder = await orRelease(first, () => transcoder.encoder('array', query.selection));
    const body = await collect(first, encoder, PAGE_HEAD, pageTail(info));
    const path = request.notes.mount + request.path;
    const link = pageLinks(path, new URLSearchParams([...parameters]), query, info, limits.maxOffset);
    const etag = `W/"${fingerprint(body.bytes)}"`;
    const all = link === '' ? { etag, ...headers } : { etag, link, ...headers };
    return { settled: () => body.release(), ...bytes(200, body.bytes, all) };
  };
}

function pageFrom({ collection, plan, cursor, skip }: PageQuery): From {
  if (!cursor) return skip > 0 ? { skip } : {};
  const after = rowBehind(cursor, collection, plan);
  if (cursor.at === undefined) return { after };
  throw cursorMismatch('The cursor belongs to a snapshot stream. Pages show only the current state.');
}

/** A page whose rows exceed one batch is streamed, so its size costs no memory. It has no ETag. */
function largePage(
  first: ReadBatch,
  total: Count | null,
  query: PageQuery,
  headers: Reply['headers'],
  rows: RowReader,
  transcoder: Transcoder,
  request: Request,
): Reply {
  let end: PageEnd = first;
  const batches = async function* () {
    for await (const batch of chain(rows, query.plan, first, query.limit, request.signal)) {
      const rest = fittingRows(batch, query);
      if (!rest) {
        batch.release();
        return;
      } // the page ends with the batch before, whose last row has a cursor
      end = rest;
      request.notes.rows += rest.rows;
      yield rest;
      if (rest !== batch) return;
    }
  };
  const run: StreamBody['run'] = async (sink) => {
    const tail = () => pageTail(pageInfo(query, end, total));
    const encoder = await orRelease(first, () => transcoder.encoder('array', query.selection));
    await pump({ first: batches() }, encoder, { head: PAGE_HEAD, tail }, sink);
  };
  return { status: 200, headers, body: { kind: 'stream', run } };
}
