import { AppError } from '../errors.ts';
import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, STORE_PROBLEMS, type Content, type Route } from '../http/route.ts';
import { quote } from '../input/query.ts';
import { fingerprint } from '../rows/fingerprint.ts';
import { itemToJson } from '../rows/item.ts';
import type { Selection } from '../rows/selection.ts';
import { documentOf, type Batch } from '../store/batch.ts';
import type { Bookmark } from '../store/bookmark.ts';
import type { RowReader } from '../store/store.ts';
import { candidateIds, parseId, type DetectedIdType, type IdType } from './id.ts';
import type { RowRoute } from './row-route.ts';

export interface RowOptions {
  readonly rows: Pick<RowReader, 'get'>;
  readonly cacheControl: string;
  /** The only type that texts are read as. undefined: `idType` tells the likeliest. */
  readonly onlyType: IdType | undefined;
  readonly idType: (signal: AbortSignal) => Promise<DetectedIdType>;
  /** What of the row may leave the server. Absent: everything. */
  readonly shown?: Selection;
}

interface RowTold extends RowRoute {
  readonly example?: Content['example'];
  /** Ids that exist in the bundled catalogue. */
  readonly exampleIds?: readonly string[];
}

/** GET of one row by its id. */
export function rowRoute(told: RowTold, { rows, cacheControl, onlyType, idType, shown }: RowOptions): Route {
  const { noun, exampleIds } = told;
  const article = /^[aeiou]/i.test(noun.one) ? 'an' : 'a';
  return {
    method: 'GET',
    path: `${told.path}/{id}`,
    access: 'keyed',
    cost: 'page',
    right: 'read',
    id: told.id,
    tag: told.tag,
    summary: `Get ${article} ${noun.one}`,
    description:
      'If the id equals the path of another resource, such as `stream`, percent-encode its first letter.',
    parameters: {
      id: {
        type: 'string',
        minLength: 1,
        description: `the id of the ${noun.one}, as its JSON shows it`,
        ...(exampleIds && { examples: exampleIds }),
      },
    },
    headers: ['If-None-Match'],
    answers: {
      200: jsonAnswer(`The ${noun.one}`, told.schema, ['ETag', 'Cache-Control'], told.example),
      304: {
        description: `The client already has this state of the ${noun.one}: its ETag is in If-None-Match`,
        headers: ['ETag'],
      },
    },
    problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
    produces: [JSON_TYPE],
    handler: async ({ request, parameters: { id = '' } }) => {
      const only = onlyType && parseId(id, onlyType);
      const keys = onlyType ? (only ? [only] : []) : candidateIds(id, await idType(request.signal));
      const batch = await firstOf(keys, rows, request.signal);
      if (!batch) throw new AppError('not-found', `No ${noun.one} has the id ${quote(id)}.`);
      try {
        const text = itemToJson(documentOf(batch), shown);
        request.notes.rows = 1;
        return json(200, text, {
          etag: `"${fingerprint(Buffer.from(text))}"`,
          'cache-control': cacheControl,
        });
      } finally {
        batch.release();
      }
    },
  };
}

/** The first of these rows that exists. Null when none does. */
async function firstOf(
  ids: readonly Bookmark[],
  rows: Pick<RowReader, 'get'>,
  signal: AbortSignal,
): Promise<Batch | null> {
  for (const id of ids) {
    const batch = await rows.get(id, signal);
    if (batch) return batch;
  }
  return null;
}
