import type { ProblemCode } from '../errors.ts';
import type { Parameter } from '../http/parameter.ts';
import type { REQUEST_HEADERS, RESPONSE_HEADERS } from './headers.ts';
import type { Schema } from './schema.ts';

export type Tag = 'Items' | 'Exports' | 'Users' | 'Server';

/**
 * What /openapi.json says of one route; it stands in the route's row, and a route without it does not compile. What holds for
 * every operation is added by document.ts: the problems of COMMON_PROBLEMS, their status, the headers of every answer.
 */
export interface Operation {
  /** What generated clients call it: a verb and what it does it to, `listItems`. */
  readonly id: string;
  readonly tag: Tag;
  /** Asked without an API key: see http/admit.ts. */
  readonly open?: true;
  /** A few words. */
  readonly summary: string;
  /** Markdown. */
  readonly description?: string;
  /** The `{name}`s of the path. Each schema has a `description`, and if possible `examples` that exist. */
  readonly path?: Readonly<Record<string, Schema>>;
  /** The parameters of the query: the very ones that read it, each `documented`. */
  readonly query?: readonly Parameter<unknown>[];
  readonly headers?: readonly (keyof typeof REQUEST_HEADERS)[];
  /** The schema that checks the body; its media types are the route's `accepts`. */
  readonly body?: { readonly schema: Schema; readonly example: unknown };
  /** By status, without problems. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** Those it can meet beside COMMON_PROBLEMS. */
  readonly problems?: readonly ProblemCode[];
}

export interface Answer {
  readonly description: string;
  readonly headers?: readonly (keyof typeof RESPONSE_HEADERS)[];
  /** Headers that it has mostly, but not always. */
  readonly sometimes?: readonly (keyof typeof RESPONSE_HEADERS)[];
  /** By media type; missing: there is no body. */
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Content {
  readonly schema: Schema;
  /** A request, such as `/items?limit=1`, and what it answers on the bundled catalogue: a test asks and compares. */
  readonly example?: { readonly request: string; readonly answer: unknown };
}

/** What every operation can meet. */
export const COMMON_PROBLEMS: readonly ProblemCode[] = [
  'invalid-parameter',
  'unknown-parameter',
  'duplicate-parameter',
  'unauthorized',
  'uri-too-long',
  'not-acceptable',
  'rate-limited',
  'internal',
  'overloaded',
];

/** What an operation that asks the store can meet, too. */
export const STORE_PROBLEMS: readonly ProblemCode[] = ['store-unavailable', 'store-unfit'];

/** What any page can meet. */
export const PAGE_PROBLEMS: readonly ProblemCode[] = [
  'conflicting-parameters',
  'offset-too-deep',
  'invalid-cursor',
  'cursor-mismatch',
  'invalid-header',
  'precondition-failed',
  ...STORE_PROBLEMS,
];

/** An answer of JSON. */
export function jsonAnswer(
  description: string,
  schema: Schema,
  headers: Answer['headers'] = [],
  example?: Content['example'],
): Answer {
  return {
    description,
    headers,
    content: { 'application/json': { schema, ...(example && { example }) } },
  };
}
