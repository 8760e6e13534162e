import { ORDERED } from '../exports/operations.ts';
import { jsonAnswer, PAGE_PROBLEMS, STORE_PROBLEMS, type Operation } from '../openapi/operation.ts';
import { pageParameters, type PageLimits } from '../pages/query.ts';
import { Type } from '../schema.ts';
import { ITEM, PAGE, PARTITIONS } from '../serialize/schemas.ts';
import { PARTITIONS_QUERY } from './partitions.ts';
import { ITEM_PLAN } from './query.ts';
import { STREAM_QUERY } from './stream-query.ts';

export const ITEM_PAGE = Type.Object(
  { data: Type.Array(ITEM, { description: 'the rows' }), page: PAGE },
  { additionalProperties: false, description: 'a page of items' },
);

export function listItems(limits: PageLimits): Operation {
  return {
    id: 'listItems',
    tag: 'Items',
    summary: 'A page of items',
    description:
      'Filter and sort go with every style of paging: give one of `cursor`, `offset` and `page`. A cursor page costs the same at any depth.',
    query: pageParameters(limits, ITEM_PLAN, true),
    headers: ['If-None-Match'],
    answers: {
      200: {
        // A page of many megabytes goes out as a stream: its end is not known when its head is sent.
        sometimes: ['ETag', 'Link'],
        ...jsonAnswer('The page', ITEM_PAGE, ['Cache-Control'], {
          request: '/items?limit=1&fields=price,color&page=3',
          answer: {
            data: [{ id: 'd00003', price: 327, color: 'E' }],
            page: {
              limit: 1,
              hasMore: true,
              nextCursor: 'AfC68gEVAAAAAl9pZAAHAAAAZDAwMDAzAABdT_iI',
              page: 3,
            },
          },
        }),
      },
      304: { description: 'The page is the one that If-None-Match names', headers: ['ETag'] },
    },
    problems: PAGE_PROBLEMS,
  };
}

export const STREAM_ITEMS: Operation = {
  id: 'streamItems',
  tag: 'Items',
  summary: 'The whole set, as it becomes available',
  description:
    'Never faster than the client reads. A stream that ends cleanly is whole; one that fails is cut: the connection closes before the last chunk. Resume with `cursor` or `after`.',
  query: STREAM_QUERY,
  headers: ['Prefer'],
  answers: {
    202: { ...ORDERED, description: 'With `Prefer: respond-async`: an export of the set was ordered' },
    200: {
      description: 'The rows in order',
      headers: ['Cache-Control'],
      content: {
        'application/x-ndjson': {
          schema: {
            type: 'string',
            description:
              'A row a line, each an Item, LF at the end. With `checkpoints=true` also lines that are a Checkpoint, End or Failure.',
          },
          example: {
            request: '/items/stream?fields=price&limit=2&after=d53938',
            answer: '{"id":"d53939","price":2757}\n{"id":"d53940","price":2757}\n',
          },
        },
        'application/jsonl': { schema: { type: 'string', description: 'the same' } },
        'application/json': {
          schema: { type: 'array', items: ITEM, description: 'all rows' },
          example: {
            request: '/items/stream?format=json&fields=price&limit=1',
            answer: [{ id: 'd00001', price: 326 }],
          },
        },
        'text/csv': {
          schema: { type: 'string', description: 'RFC 4180, UTF-8' },
          example: {
            request: '/items/stream?format=csv&fields=price,color&limit=1',
            answer: 'id,price,color\r\nd00001,326,E\r\n',
          },
        },
      },
    },
  },
  problems: [
    'conflicting-parameters',
    'invalid-cursor',
    'cursor-mismatch',
    'snapshot-unsupported',
    'snapshot-expired',
    'collection-replaced',
    'too-many-streams',
    'too-many-exports',
    'insufficient-storage',
    ...STORE_PROBLEMS,
  ],
};

export const LIST_PARTITIONS: Operation = {
  id: 'listPartitions',
  tag: 'Items',
  summary: 'Disjoint parts of the set, each with its stream',
  description:
    'For several connections at once. Filter and form are taken over into the URLs of the streams.',
  query: PARTITIONS_QUERY,
  answers: {
    200: jsonAnswer('The parts, in order of id', PARTITIONS, ['Cache-Control'], {
      request: '/items/partitions?n=2&fields=price',
      answer: {
        partitions: [
          { url: '/items/stream?part=ARQAAAACdG8ABwAAAGQyNjk3MQAAVyW-iA&fields=price' },
          { url: '/items/stream?part=ARYAAAACZnJvbQAHAAAAZDI2OTcxAADvOAW_&fields=price' },
        ],
      },
    }),
  },
  problems: ['snapshot-unsupported', 'snapshot-expired', ...STORE_PROBLEMS],
};

export const GET_ITEM: Operation = {
  id: 'getItem',
  tag: 'Items',
  summary: 'One item',
  description:
    'An item whose id is the name of another resource here is reached by percent-encoding its first letter.',
  path: {
    id: { type: 'string', minLength: 1, description: 'its id as JSON shows it', examples: ['d00001'] },
  },
  headers: ['If-None-Match'],
  answers: {
    200: jsonAnswer('The item', ITEM, ['ETag', 'Cache-Control'], {
      request: '/items/d00003',
      answer: {
        id: 'd00003',
        name: '0.23 ct Good cut diamond, color E, clarity VS1',
        category: 'Good',
        price: 327,
        carat: 0.23,
        color: 'E',
        clarity: 'VS1',
        depth: 56.9,
        table: 65,
        x: 4.05,
        y: 4.07,
        z: 2.31,
      },
    }),
    304: { description: 'The item is the one that If-None-Match names', headers: ['ETag'] },
  },
  problems: ['invalid-url', 'not-found', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS],
};
