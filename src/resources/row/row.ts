import { AppError } from '../../errors.ts';
import { bytes } from '../../http/reply.ts';
import { JSON_TYPE, jsonAnswer, notModified, STORE_PROBLEMS, type Route } from '../../http/route.ts';
import { quote } from '../../input/query.ts';
import { collect } from '../page/body.ts';
import { fingerprint } from '../../rows/fingerprint.ts';
import { keyToJson } from '../../rows/row-json.ts';
import { documentOf, orRelease, type Batch } from '../../store/batch.ts';
import { readRow } from '../../store/row.ts';
import { bookmarkOf, KEY, type Bookmark } from '../../store/bookmark.ts';
import type { RowReader } from '../../store/store.ts';
import { idsShownAs, type IdReading } from './id.ts';
import { resourceFor } from '../query/part.ts';
import type { Resource } from '../query/resource.ts';
import type { RouteDocs, RouteOptions } from '../route-docs.ts';

type RowOptions = Pick<RouteOptions, 'transcoder' | 'cacheControl'>;

/** GET of one row by its id. */
export function rowRoute(
  docs: RouteDocs<'get'>,
  whole: Resource,
  { transcoder, cacheControl }: RowOptions,
): Route {
  const { noun, examples } = docs;
  const article = /^[aeiou]/i.test(noun.one) ? 'an' : 'a';
  return {
    method: 'GET',
    path: `${docs.path}/{id}`,
    access: 'keyed',
    cost: 'page',
    right: 'read',
    id: docs.ids.get,
    tag: docs.tag,
    summary: `Get ${article} ${noun.one}`,
    description:
      'If the id equals the path of another resource, such as `stream`, percent-encode its first letter.',
    parameters: {
      id: {
        type: 'string',
        minLength: 1,
        description: `the id of the ${noun.one}, as its JSON shows it`,
        ...(examples.ids && { examples: examples.ids }),
      },
    },
    headers: ['If-None-Match'],
    answers: {
      200: jsonAnswer(`The ${noun.one}`, docs.row.schema, ['ETag', 'Cache-Control'], examples.get),
      304: notModified(`this state of the ${noun.one}`),
    },
    problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
    produces: [JSON_TYPE],
    handler: async ({ request, parameters: { id = '' }, client }) => {
      const resource = resourceFor(whole, client);
      const ids = await idsShownAs(id, resource, request.signal);
      const found = await rowShownAs(id, ids, resource.rows, request.signal);
      if (!found) throw new AppError('not-found', `No ${noun.one} has the id ${quote(id)}.`);
      const encoder = await orRelease(found.batch, () => transcoder.encoder('array', resource.shown));
      const body = await collect(found.batch, encoder);
      request.notes.rows = 1;
      const etag = `"${fingerprint(body.bytes)}"`;
      const headers = { 'content-type': JSON_TYPE, etag, 'cache-control': cacheControl };
      return { settled: () => body.release(), ...bytes(200, body.bytes, headers) };
    },
  };
}

/** The first row that exists among those that a text can stand for, with its id. Null when there is none. */
export async function rowShownAs(
  text: string,
  readings: readonly IdReading[],
  rows: Pick<RowReader, 'read'>,
  signal: AbortSignal,
): Promise<{ readonly batch: Batch; readonly id: Bookmark } | null> {
  for (const { id, kind } of readings) {
    const batch = await readRow(rows, id, signal);
    if (!batch) continue;
    if (kind !== 'null' || isShownAs(documentOf(batch), text)) return { batch, id };
    batch.release();
  }
  return null;
}

/** Whether the JSON of a row shows its key as this text. */
function isShownAs(row: Uint8Array, text: string): boolean {
  const shown = keyToJson(bookmarkOf(row, { sort: KEY }));
  const key = shown.slice(shown.indexOf(':') + 1, -1);
  return key === text || key === JSON.stringify(text);
}
