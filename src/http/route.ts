import type { ProblemCode } from '../errors.ts';
import type { REQUEST_HEADERS, RESPONSE_HEADERS } from './openapi/headers.ts';
import type { Schema, Static, TSchema } from '../schema.ts';
import type { Client, Demand } from '../access/admission.ts';
import type { JsonBody } from '../input/body-json.ts';
import type { Reply, Request } from '../engine/edge.ts';
import type { Parameter } from '../input/parameter.ts';
import type { Query } from '../input/query.ts';

export type Tag = 'Items' | 'Exports' | 'Users' | 'Server';

/**
 * One operation: everything that is known of it, in one value. The router, admission, the log, metrics, OPTIONS,
 * /openapi.json and the reference page read the same value.
 */
export interface Route<B extends TSchema = TSchema> extends Demand {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** A literal path of which the last segment, or the one before, may be `{name}`, which takes any non-empty segment. */
  readonly path: string;
  /** What generated clients call it: a verb and what it does it to, `listItems`. */
  readonly id: string;
  readonly tag: Tag;
  /** A few words. */
  readonly summary: string;
  /** Markdown. */
  readonly description?: string;
  /** The `{name}`s of the path. Each schema has a `description`, and if possible `examples` that exist. */
  readonly parameters?: Readonly<Record<string, Schema>>;
  /** All parameters the query may have; others are refused. */
  readonly query?: readonly Parameter<unknown>[];
  /** The request headers that it reads. */
  readonly headers?: readonly (keyof typeof REQUEST_HEADERS)[];
  readonly body?: RouteBody<B>;
  /** The media types Accept chooses from, the preferred one first; missing: there is one form, whatever Accept says. */
  readonly produces?: readonly string[];
  /** The media type that a parameter asks for, which wins over Accept. */
  readonly typeAsked?: (query: Query) => string | undefined;
  /** By status, without problems. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** Those it can meet beside COMMON_PROBLEMS. */
  readonly problems?: readonly ProblemCode[];
  /** Answers in another way before a stream slot is taken; null: `handler` answers. */
  instead?(input: Input<Static<B>>): Promise<Reply | null>;
  handler(input: Input<Static<B>>): Reply | Promise<Reply>;
}

/** A route's request body: what is taken, and an example of it. */
export interface RouteBody<B extends TSchema = TSchema> {
  /** Media types; OPTIONS names them. */
  readonly types: readonly string[];
  readonly schema: B;
  readonly example: unknown;
}

/** A request as its route declared it. */
export interface Input<T = unknown> {
  readonly request: Request;
  /** The decoded segments of the path's `{name}`s. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  /** The media type of the answer, one of `produces`; empty where there is one form. */
  readonly type: string;
  /** Who asks, as the limits name clients. */
  readonly client: Client;
  /**
   * Reads and checks the body. A handler asks for it behind what is to be refused before. AppError
   * `unsupported-media-type`, `body-too-large`, `malformed-json`, `invalid-body`.
   */
  readonly body: () => Promise<T>;
  /** Reads the body without the schema's check, for what a schema cannot say. The same AppErrors but `invalid-body`. */
  readonly json: () => Promise<JsonBody>;
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
  /** The schemas of a text's lines, where the schema can only say that it is text. */
  readonly lines?: readonly Schema[];
  /** A request, such as `/items?limit=1`, and what it answers on the bundled catalogue: a test asks and compares. */
  readonly example?: { readonly request: string; readonly answer: unknown };
}

/** A route whose handler gets the body that its schema describes. */
export function route<B extends TSchema>(declared: Route<B>): Route {
  return declared;
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

/** What an operation with a body can meet, too. */
export const BODY_PROBLEMS: readonly ProblemCode[] = [
  'malformed-json',
  'body-too-large',
  'unsupported-media-type',
  'invalid-body',
];

export const JSON_TYPE = 'application/json';

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
    content: { [JSON_TYPE]: { schema, ...(example && { example }) } },
  };
}
