import fastJson from 'fast-json-stringify';
import type { BodyFault } from '../errors.ts';
import { Type } from '../schema.ts';
import { REMOVED_USER, USER, type RemovedUser, type User } from '../users/user.ts';

/** A problem document (RFC 9457). */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  readonly requestId: string;
  /** The query parameter at fault. */
  readonly parameter?: string;
  /** All that is wrong with the request body. */
  readonly errors?: readonly BodyFault[];
}

/** The `page` member of a page's answer. */
export interface PageDocument {
  readonly limit: number;
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
  readonly offset?: number;
  readonly page?: number;
  readonly total?: number;
  readonly totalIs?: string;
}

/** What a stream has given so far: see checkpoints.ts. */
export interface TallyDocument {
  /** Continues behind the last row; null when there is none and the stream began at its beginning. */
  readonly cursor: string | null;
  readonly rows: number;
  readonly bytes: number;
  /** Eight hexadecimal digits. */
  readonly crc32: string;
}

/** What GET /problems/{code} says of a problem. */
export interface ProblemPage {
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly explanation: string;
}

interface Serializers {
  /** An item in the form item.ts makes of it: `id` first, then all other fields in the object's order. */
  item(value: Readonly<Record<string, unknown>>): string;
  problem(value: ProblemDocument): string;
  checkpoint(value: { readonly checkpoint: TallyDocument }): string;
  end(value: { readonly end: TallyDocument }): string;
  failure(value: { readonly error: ProblemDocument }): string;
  partitions(value: { readonly partitions: readonly { readonly url: string }[] }): string;
  problemPage(value: ProblemPage): string;
  page(value: PageDocument): string;
  health(value: { readonly status: string; readonly reasons: readonly string[] }): string;
  user(value: User): string;
  removedUser(value: RemovedUser): string;
}

const PROBLEM_SCHEMA = {
  type: 'object',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string' },
    requestId: { type: 'string' },
    parameter: { type: 'string' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        properties: { pointer: { type: 'string' }, detail: { type: 'string' } },
      },
    },
  },
} as const;

const TALLY_SCHEMA = {
  type: 'object',
  properties: {
    cursor: { type: 'string', nullable: true },
    rows: { type: 'integer' },
    bytes: { type: 'integer' },
    crc32: { type: 'string' },
  },
} as const;

/**
 * Every precompiled JSON serializer of the server. A schema is a whitelist: what it does not name is not written, and
 * fields come in its order. Compiled once, at start.
 */
export const serializers: Serializers = {
  item: fastJson({
    type: 'object',
    properties: { id: {} },
    additionalProperties: true,
  }),

  problem: fastJson(PROBLEM_SCHEMA),
  checkpoint: fastJson({ type: 'object', properties: { checkpoint: TALLY_SCHEMA } }),
  end: fastJson({ type: 'object', properties: { end: TALLY_SCHEMA } }),
  failure: fastJson({ type: 'object', properties: { error: PROBLEM_SCHEMA } }),

  partitions: fastJson({
    type: 'object',
    properties: {
      partitions: { type: 'array', items: { type: 'object', properties: { url: { type: 'string' } } } },
    },
  }),

  problemPage: fastJson({
    type: 'object',
    properties: {
      code: { type: 'string' },
      status: { type: 'integer' },
      title: { type: 'string' },
      explanation: { type: 'string' },
    },
  }),

  health: fastJson({
    type: 'object',
    properties: { status: { type: 'string' }, reasons: { type: 'array', items: { type: 'string' } } },
  }),

  page: fastJson({
    type: 'object',
    properties: {
      limit: { type: 'integer' },
      hasMore: { type: 'boolean' },
      nextCursor: { type: 'string', nullable: true },
      offset: { type: 'integer' },
      page: { type: 'integer' },
      total: { type: 'integer' },
      totalIs: { type: 'string' },
    },
  }),

  // Nothing is required here: fast-json-stringify writes required fields first, and lists have the stored order.
  user: fastJson(Type.Partial(USER)),
  removedUser: fastJson(REMOVED_USER),
};
