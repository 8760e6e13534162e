import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { PROBLEMS } from '../../../src/base/problems.ts';
import type { Reply, Request, Serve } from '../../../src/engine/edge.ts';
import { getOrMake } from '../../../src/base/get-or-make.ts';
import type { Route } from '../../../src/http/route.ts';
import { createDocument } from '../../../src/openapi/document.ts';

interface Response {
  /** Headers of every answer are given by reference. */
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, unknown>>;
}
interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, Response>>;
}

/**
 * The number of answers of one kind that are read to their last byte. For further ones only status, headers
 * and media type are checked.
 */
const READ_IN_FULL = 20;

interface Options {
  readonly withKeys: boolean;
  readonly limited: boolean;
}

/** The operations of a document, and its schemas, compiled on demand. */
class Documented {
  readonly #operations: Readonly<Record<string, Operation>>;
  // A test of its own checks the document itself. Compiling its meta-schema takes longer than a server's
  // start.
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, meta: false, validateSchema: false });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(routes: readonly Route[], options: Options) {
    const document = createDocument(routes, { version: '0', ...options });
    this.#ajv.addSchema(document, 'document');
    const paths = document.paths as Record<string, Record<string, Operation>>;
    this.#operations = Object.fromEntries(
      Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([key, operation]) => [`${key} ${path}`, operation]),
      ),
    );
  }

  operation(method: string, route: string): Operation | undefined {
    return this.#operations[`${method.toLowerCase()} ${route}`];
  }

  /** The fault of a value by the schema at this path of the document. null when the value is valid. */
  fault(path: readonly string[], value: unknown): string | null {
    const pointer = path
      .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    let validate = this.#validators.get(pointer);
    if (!validate) {
      validate = this.#ajv.compile({ $ref: `document#/${pointer}` });
      this.#validators.set(pointer, validate);
    }
    return validate(value) ? null : this.#ajv.errorsText(validate.errors);
  }
}

/** Documents by the facts in which they differ. The servers of a process share them. */
const documents = new Map<string, Documented>();

const ofRoutes = new WeakMap<readonly Route[], Documented>();

function documented(routes: readonly Route[], options: Options): Documented {
  return getOrMake(ofRoutes, routes, () => shared(routes, options));
}

function shared(routes: readonly Route[], options: Options): Documented {
  const key = JSON.stringify([
    options,
    routes.map(({ method, path, access }) => `${method} ${path} ${access}`),
  ]);
  const known = documents.get(key) ?? new Documented(routes, options);
  documents.set(key, known);
  return known;
}

/** Checks answers against /openapi.json, and records which ones were seen. */
export class AnswerCheck {
  /** The answers that differ from the document. */
  readonly faults: string[] = [];
  /** `operationId status`, and `operationId code` for problems. */
  readonly seen = new Set<string>();
  readonly #routes: () => readonly Route[];
  readonly #options: Options;
  readonly #read = new Map<string, number>();

  constructor(routes: () => readonly Route[], options: Options) {
    this.#routes = routes;
    this.#options = options;
  }

  get #document(): Documented {
    return documented(this.#routes(), this.#options);
  }

  /** Wraps a server so that every answer is checked. */
  watch(serve: Serve): Serve {
    return async (request) => {
      const reply = await serve(request);
      this.check(request, reply);
      return reply;
    };
  }

  check(request: Request, reply: Reply): void {
    const { route } = request.notes;
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const operation = route === null ? undefined : this.#document.operation(method, route);
    const say = (fault: string) =>
      this.faults.push(`${request.method} ${request.path}?${request.query} -> ${reply.status}: ${fault}`);
    if (!operation) {
      this.#checkUndocumented(request, reply, say);
      return;
    }
    const key = `${operation.operationId} ${reply.status}`;
    this.seen.add(key);
    const documented = operation.responses[reply.status];
    if (!documented) {
      say('the status is not documented');
      return;
    }
    for (const [name, header] of Object.entries(documented.headers ?? {}))
      if ('$ref' in header && reply.headers[name.toLowerCase()] === undefined)
        say(`the header ${name} is missing`);
    if (reply.body.kind === 'none' || reply.body.kind === 'head') return;
    const type = (reply.headers['content-type'] ?? '').replace(/;.*/, '');
    if (!documented.content?.[type]) {
      say(`the media type ${type} is not documented`);
      return;
    }
    const value = this.#valueOf(reply, type, key);
    if (value === undefined) return;
    if (type === 'application/problem+json')
      this.seen.add(`${operation.operationId} ${(value as { code: string }).code}`);
    const place = [method.toLowerCase(), 'responses', String(reply.status), 'content', type, 'schema'];
    const fault = this.#document.fault(['paths', route ?? '', ...place], value);
    if (fault !== null) say(fault);
  }

  /** Checks answers outside all operations: other paths, other methods, OPTIONS. */
  #checkUndocumented(request: Request, reply: Reply, say: (fault: string) => void): void {
    if (request.method === 'OPTIONS' && reply.status === 204) return;
    if (reply.headers['content-type'] !== 'application/problem+json') {
      if (reply.body.kind === 'bytes') say('it is no problem document');
      return;
    }
    const value = this.#valueOf(reply, 'application/problem+json', 'none');
    if (value === undefined) return;
    const fault = this.#document.fault(['components', 'schemas', 'Problem'], value);
    if (fault !== null) say(fault);
    else if (PROBLEMS[(value as { code: keyof typeof PROBLEMS }).code].status !== reply.status)
      say('the code has another status');
  }

  #valueOf({ headers, body }: Reply, type: string, key: string): unknown {
    const read = this.#read.get(key) ?? 0;
    if (body.kind !== 'bytes' || !type.endsWith('json') || read >= READ_IN_FULL) return undefined;
    this.#read.set(key, read + 1);
    const coding = headers['content-encoding'];
    if (coding === 'zstd') return undefined;
    const bytes =
      coding === 'br'
        ? brotliDecompressSync(body.bytes)
        : coding === 'gzip'
          ? gunzipSync(body.bytes)
          : body.bytes;
    return JSON.parse(Buffer.from(bytes).toString()) as unknown;
  }
}
