import { PROBLEMS } from '../errors.ts';
import { Type, type Static } from '../schema.ts';

/**
 * The schemas of what the server says, beside those of its resources: the serializers are compiled from them, and
 * /openapi.json shows them. Required members stand first: serializers write them first.
 */
const text = (description: string) => Type.String({ description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
const shut = (description: string) => ({ additionalProperties: false, description });

/** Fields pass through untouched, so nothing more is said of them. */
const KEY_TYPES = ['string', 'number', 'boolean', 'object', 'null'];
export const ITEM = Type.Object(
  {
    id: Type.Optional(
      Type.Unknown({
        description:
          'the key, mostly a text or an integer, and then the first member; beside `_id` a field of the document, of any type',
      }),
    ),
    _id: Type.Optional(
      Type.Unsafe<string | number>({
        type: KEY_TYPES,
        description:
          'the key, then the first member, of a document with a field `id` of its own (which `fields` may leave out)',
      }),
    ),
    category: Type.Optional(Type.Unknown({ description: 'a text' })),
    price: Type.Optional(Type.Unknown({ description: 'a finite number' })),
  },
  {
    additionalProperties: true,
    anyOf: [{ required: ['_id'] }, { required: ['id'], properties: { id: { type: KEY_TYPES } } }],
    description:
      'an item, with all fields it has in the store or those asked for; its key is the first member, `id` or `_id`',
  },
);

const bodyFault = Type.Object(
  {
    pointer: text('where: a JSON Pointer (RFC 6901)'),
    detail: text('what was expected and what came'),
  },
  shut('one thing that is wrong with a request body'),
);

export const PROBLEM = Type.Object(
  {
    type: text('a URL that explains the problem'),
    title: text('the problem in a few words'),
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'the status of the answer' }),
    detail: text('what was expected and what came'),
    instance: text('the path that was asked for'),
    code: Type.Unsafe<string>({
      type: 'string',
      enum: Object.keys(PROBLEMS),
      description: 'the problem in a word that does not change',
    }),
    requestId: text('what to quote; the log of the server has it, too'),
    parameter: Type.Optional(text('the query parameter at fault')),
    errors: Type.Optional(Type.Array(bodyFault, { description: 'all that is wrong with the request body' })),
  },
  shut('a problem document (RFC 9457)'),
);

export const PROBLEM_PAGE = Type.Object(
  {
    code: text('the code of the problem'),
    status: Type.Integer({ description: 'the status it comes with' }),
    title: text('the problem in a few words'),
    explanation: text('why it comes, and what to do about it'),
  },
  shut('what there is to know of a problem'),
);

const cursor = (description: string) => Type.Unsafe<string | null>({ type: ['string', 'null'], description });

export const PAGE = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, description: 'rows a page has at most' }),
    hasMore: Type.Boolean({ description: 'whether rows stand behind this page; exact' }),
    nextCursor: cursor('continues behind the last row; null: the page is empty and no cursor was given'),
    offset: Type.Optional(count('as it was asked for')),
    page: Type.Optional(Type.Integer({ minimum: 1, description: 'as it was asked for' })),
    total: Type.Optional(count('how many rows there are in all, when count asks for that')),
    totalIs: Type.Optional(
      Type.Unsafe<'exact' | 'estimated' | 'atLeast'>({
        type: 'string',
        enum: ['exact', 'estimated', 'atLeast'],
        description: 'how the total is to be read',
      }),
    ),
  },
  shut('where the page stands, and how to go on'),
);

export const TALLY = Type.Object(
  {
    cursor: cursor('continues behind the last row; null: no row came, and the stream began at its beginning'),
    rows: count('rows since the beginning of this answer'),
    bytes: count('bytes of their lines, LF included'),
    crc32: Type.String({ pattern: '^[0-9a-f]{8}$', description: 'CRC-32 of their lines' }),
  },
  shut('what a stream has given so far'),
);

export const CHECKPOINT = Type.Object({ checkpoint: TALLY }, shut('a control line between rows'));
export const END = Type.Object({ end: TALLY }, shut('the last line of a whole stream'));
export const FAILURE = Type.Object({ error: PROBLEM }, shut('the last line of a stream that is cut'));

export const PARTITIONS = Type.Object(
  {
    partitions: Type.Array(Type.Object({ url: text('the stream of this part') }, shut('a range of ids')), {
      minItems: 1,
      description: 'in order of id',
    }),
  },
  shut('disjoint ranges that together are the set'),
);

export const HEALTH = Type.Object(
  {
    status: Type.Unsafe<'alive' | 'ready' | 'not ready'>({
      type: 'string',
      enum: ['alive', 'ready', 'not ready'],
      description: 'the answer in a word',
    }),
    reasons: Type.Array(text('a sentence'), {
      description: 'everything that speaks against sending requests',
    }),
  },
  shut('how the server is'),
);

export type ProblemDocument = Readonly<Static<typeof PROBLEM>>;
export type PageDocument = Readonly<Static<typeof PAGE>>;
export type TallyDocument = Readonly<Static<typeof TALLY>>;
export type HealthDocument = Readonly<Static<typeof HEALTH>>;
export type ProblemPage = Readonly<Static<typeof PROBLEM_PAGE>>;
