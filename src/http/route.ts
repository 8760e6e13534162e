import type { ProblemCode } from '../base/problems.ts';
import type { REQUEST_HEADERS, RESPONSE_HEADERS } from './header-docs.ts';
import type { Schema, Static, TSchema } from '../base/schema.ts';
import type { Client, Demand } from '../access/admission.ts';
import type { JsonBody } from '../input/body-json.ts';
import type { Reply, Request } from '../engine/edge.ts';
import type { Parameter } from '../input/parameter.ts';
import type { Query } from '../input/query.ts';

export type Tag = 'Items' | 'Resources' | 'Editions' | 'Exports' | 'Users' | 'Server';

/** All that is known about one operation. The router, admission, the log, metrics, OPTIONS and /openapi.json read it. */
export interface Route<B extends TSchema = TSchema> extends Demand {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** A literal path. Its last segment, or the one before, may be `{name}`, which matches any non-empty segment. */
  readonly path: string;
  /** The name of the resource, for metrics. Missing: the path belongs to none. */
  readonly resource?: string;
  /** The name in generated clients: a verb and its object, such as `listItems`. */
  readonly id: string;
  readonly tag: Tag;
  /** A few words. */
  readonly summary: string;
  /** Markdown. */
  readonly description?: string;
  /** A static file: it is no operation of /openapi.json. */
  readonly isFile?: true;
  /** The `{name}`s of the path. Each schema has a `description`, and, if possible, `examples` that exist. */
  readonly parameters?: Readonly<Record<string, Schema>>;
  /** All parameters that the query may have. Others are refused. */
  readonly query?: readonly Parameter<unknown>[];
  /** Whether the query may also have a parameter of this name: it asks for a field of the rows. */
  readonly isField?: (name: string) => boolean;
  readonly headers?: readonly (keyof typeof REQUEST_HEADERS)[];
  readonly body?: RouteBody<B>;
  /** The media types that Accept chooses from, the preferred one first. Missing: there is one form, whatever it says. */
  readonly produces?: readonly string[];
  /** The media type that a query parameter asks for. It takes precedence over Accept. */
  readonly typeAsked?: (query: Query) => string | undefined;
  /** All that a key needs for a query, each in place of what the route declares. Missing: that alone. */
  readonly needs?: (query: Query) => readonly Partial<Pick<Route, 'right' | 'resource'>>[];
  /** The answers by status, without problems. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** The problems that the operation can meet beside COMMON_PROBLEMS. */
  readonly problems?: readonly ProblemCode[];
  /** Answers in another way before a stream slot is taken. When it resolves with null, `handler` answers. */
  instead?(input: Input<Static<B>>): Promise<Reply | null>;
  handler(input: Input<Static<B>>): Reply | Promise<Reply>;
}

/** A route's request body: what it accepts, and an example. */
export interface RouteBody<B extends TSchema = TSchema> {
  /** The accepted media types. OPTIONS names them. */
  readonly types: readonly string[];
  readonly schema: B;
  readonly example: unknown;
}

/** A request in the form that its route declares. */
export interface Input<T = unknown> {
  readonly request: Request;
  /** The decoded segments for the `{name}`s of the path. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  /** The media type of the answer, one of `produces`; empty when there is one form. */
  readonly type: string;
  /** The client that sent the request, as the limits name it. */
  readonly client: Client;
  /**
   * Reads and checks the body. A handler calls it only after the checks that must refuse a request first. Throws
   * AppError `unsupported-media-type`, `body-too-large`, `malformed-json` or `invalid-body`.
   */
  readonly body: () => Promise<T>;
  /**
   * Waits for something that costs this process nothing meanwhile: the request takes one of the client's stream slots, and is
   * no work in progress. Throws AppError `too-many-streams` and, when the key has ended meanwhile, `forbidden`.
   */
  readonly idle: (until: () => Promise<void>) => Promise<void>;
  /** Reads the body for rules that a schema cannot express. Throws the same AppErrors except `invalid-body`. */
  readonly json: () => Promise<JsonBody>;
}

export interface Answer {
  readonly description: string;
  readonly headers?: readonly (keyof typeof RESPONSE_HEADERS)[];
  /** Headers that the answer has usually, but not always. */
  readonly sometimes?: readonly (keyof typeof RESPONSE_HEADERS)[];
  /** Any cache may give it to anybody (see Reply.isShared): it does not say what one client has left. */
  readonly isShared?: boolean;
  /** By media type. Missing: the answer has no body. */
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Content {
  readonly schema: Schema;
  /** The schemas of the lines, where `schema` can only say that the content is text. */
  readonly lines?: readonly Schema[];
  /** A request, such as `/items?limit=1`, and its answer on the bundled catalogue. A test sends it and compares. */
  readonly example?: Example;
}

export interface Example {
  readonly request: string;
  readonly answer: unknown;
}

/** Declares a route whose handler gets the body that its schema describes. */
export function route<B extends TSchema>(declared: Route<B>): Route {
  return declared;
}

/** Problems that every operation can meet. */
export const COMMON_PROBLEMS: readonly ProblemCode[] = [
  'invalid-parameter',
  'unknown-parameter',
  'duplicate-parameter',
  'unauthorized',
  'misdirected-request',
  'key-server-unavailable',
  'uri-too-long',
  'not-acceptable',
  'rate-limited',
  'internal',
  'overloaded',
];

/** Further problems of an operation that reads or writes the store. */
export const STORE_PROBLEMS: readonly ProblemCode[] = ['store-unavailable', 'store-unfit'];

/** Further problems of an operation with a body. */
export const BODY_PROBLEMS: readonly ProblemCode[] = [
  'malformed-json',
  'body-too-large',
  'unsupported-media-type',
  'invalid-body',
];

export const JSON_TYPE = 'application/json';

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

/** The answer to If-None-Match with the ETag of what the client already has. */
export function notModified(what: string): Answer {
  return {
    description: `The client already has ${what}: its ETag is in If-None-Match`,
    headers: ['ETag'],
  };
}

/** The answer to a removal when the client prefers no body. `done`: a sentence without its end. */
export function removedWithoutBody(done: string): Answer {
  return {
    description: `${done}; there is no body because of \`Prefer: return=minimal\``,
    headers: ['Cache-Control', 'Preference-Applied'],
  };
}
