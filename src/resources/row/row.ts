import { AppError } from '../../base/errors.ts';
import { bytes } from '../../http/reply.ts';
import { JSON_TYPE, jsonAnswer, notModified, STORE_PROBLEMS, type Route } from '../../http/route.ts';
import { quote } from '../../input/query.ts';
import { collect } from '../page/body.ts';
import { fingerprint } from '../../rows/fingerprint.ts';
import { keyToJson } from '../../rows/row-json.ts';
import { documentOf, orRelease, type Batch } from '../../store/batch.ts';
import { compareDecimals, parseDecimal } from '../../store/values/decimal.ts';
import { readRow } from '../../store/turns/read-row.ts';
import { bookmarkOf, KEY, type Bookmark } from '../../store/bookmark.ts';
import type { RowReader } from '../../store/store.ts';
import { idsShownAs, type IdReading } from './id.ts';
import { readFields } from '../query/read-plan.ts';
import { resourceFor } from '../query/scope.ts';
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
      'If the id equals the path of another resource, such as `stream` or `edition`, percent-encode its first letter.',
    parameters: {
      id: {
        type: 'string',
        minLength: 1,
        description: `the id of the ${noun.one}, as its JSON shows it`,
        ...(examples.ids && { examples: examples.ids }),
      },
    },
    query: docs.parameters.filter(({ name }) => name === whole.form.fields.name),
    headers: ['If-None-Match'],
    answers: {
      200: jsonAnswer(`The ${noun.one}`, docs.row.schema, ['ETag', 'Cache-Control'], examples.get),
      304: notModified(`this state of the ${noun.one}`),
    },
    problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
    produces: [JSON_TYPE],
    handler: async ({ request, query, parameters: { id = '' }, client }) => {
      const resource = resourceFor(whole, client);
      const selection = resource.shown.pick(readFields(query, resource));
      const ids = await idsShownAs(id, resource, request.signal);
      const { value: found } = await rowsShownAs(id, ids, resource.rows, request.signal).next();
      if (!found) throw new AppError('not-found', `No ${noun.one} has the id ${quote(id)}.`);
      const encoder = await orRelease(found.batch, () => transcoder.encoder('array', selection));
      const body = await collect(found.batch, encoder);
      request.notes.rows = 1;
      const etag = `"${fingerprint(body.bytes)}"`;
      const headers = { 'content-type': JSON_TYPE, etag, 'cache-control': cacheControl };
      return { settled: () => body.release(), ...bytes(200, body.bytes, headers) };
    },
  };
}

/** A row that a text stands for: to be released before the next one is asked for. */
interface ShownRow {
  readonly batch: Batch;
  /** As the text was read. The row's own may be another number of the same value. */
  readonly id: Bookmark;
}

/** The rows that exist among those that a text can stand for, and whose JSON shows it. Rejects as reads do. */
export async function* rowsShownAs(
  text: string,
  readings: readonly IdReading[],
  rows: Pick<RowReader, 'read'>,
  signal: AbortSignal,
): AsyncGenerator<ShownRow, undefined, undefined> {
  for (const { id, kind } of readings) {
    const batch = await readRow(rows, id, signal);
    if (!batch) continue;
    const mayDiffer = kind === 'null' || kind === 'number'; // others are found by what they are shown as
    if (!mayDiffer || isShownAs(documentOf(batch), text, kind === 'number' ? id : null)) yield { batch, id };
    else batch.release();
  }
  return undefined;
}

/** Whether the JSON of a row shows its key as this text, or as a number of its value. */
function isShownAs(row: Uint8Array, text: string, number: Bookmark | null): boolean {
  const own = bookmarkOf(row, { sort: KEY });
  if (number && Buffer.compare(own, number) === 0) return true; // read from the text, so it shows that
  const shown = keyToJson(own);
  const key = shown.slice(shown.indexOf(':') + 1, -1);
  if (key === text || key === JSON.stringify(text)) return true;
  const [value, asked] = [key, text].map((digits) => parseDecimal(digits, { exact: true }));
  return Boolean(value && asked && compareDecimals(value, asked) === 0);
}
