import { createHash } from 'node:crypto';
import type { Client } from '../access/admission.ts';
import { HEAD_CACHING, IMMUTABLE_CACHING, typeOfFile } from '../base/edition/file-headers.ts';
import { FORMATS, isEditionFile, isEditionName } from '../base/edition/names.ts';
import { AppError } from '../base/errors.ts';
import type { FileBody, Reply } from '../engine/edge.ts';
import { empty, NOT_STORED } from '../http/reply.ts';
import {
  JSON_TYPE,
  jsonAnswer,
  notModified,
  STORE_PROBLEMS,
  type Answer,
  type Route,
} from '../http/route.ts';
import { quote } from '../input/query.ts';
import type { Resource } from '../resources/query/resource.ts';
import { closedTo } from '../resources/query/scope.ts';
import type { Editions, MakingProgress } from './editions.ts';
import { EDITION_HEAD, EDITION_INDEX } from './head-schema.ts';

/** How soon to ask again for an edition that is being made. Seconds. */
const LOOK_AGAIN_SECONDS = 5;
/** Hexadecimal digits of the SHA-256 of a head in its tag. */
const TAG_DIGITS = 32;

const HEADERS = ['ETag', 'Cache-Control'] as const;
const BYTES = { schema: { type: 'string', format: 'binary' } };
const TYPES = [...new Set(FORMATS.map((format) => typeOfFile(`x.${format}`)))];
const OF_ROWS: Readonly<Record<string, typeof BYTES>> = Object.fromEntries(
  TYPES.map((type) => [type, BYTES]),
);
const PROBLEMS = ['forbidden', 'invalid-header', 'precondition-failed', ...STORE_PROBLEMS] as const;

/** What the routes of one resource are made of. */
interface EditionRoutesOptions {
  readonly resource: Resource;
  readonly editions: Editions;
}

/** The routes of the editions of a resource that has them. */
export function editionRoutes({ resource, editions }: EditionRoutesOptions) {
  const { name } = resource;
  const isPublic = editions.isPublic(name);
  const shared = {
    access: isPublic ? 'open' : 'keyed',
    right: 'stream',
    tag: 'Editions',
  } as const;
  // What anybody may have without a key, and from any cache, a key does not take away.
  const assertReads = (client: Client): void => {
    if (!isPublic) assertWhole(resource, client);
  };
  const shown = (answers: Record<number, Answer>): Record<number, Answer> =>
    Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => [status, { ...answer, isShared: isPublic }]),
    );
  const caching = (how: string): Reply['headers'] => ({
    'cache-control': `${isPublic ? 'public' : 'private'}, ${how}`,
  });
  const file = (path: string, body: Reply['body'], etag: string, how: string): Reply => ({
    status: 200,
    headers: { 'content-type': typeOfFile(path), etag, ...caching(how) },
    body,
    ...(isPublic && { isShared: true }),
  });
  const head = (bytes: Uint8Array, how: string): Reply => {
    const digest = createHash('sha256').update(bytes).digest('hex');
    return file('edition.json', wholeOf(bytes), `"${digest.slice(0, TAG_DIGITS)}"`, how);
  };
  return {
    newest: {
      ...shared,
      method: 'GET',
      path: `/${name}/edition`,
      cost: 'page',
      id: idOf('getEditionOf', resource),
      summary: `Get the head of the newest edition of ${name}`,
      description:
        'It names the files that have all rows of one time, and the cursor from which changes follow. Its tag is of its bytes: a head of the same rows may have a later cursor.',
      headers: ['If-None-Match'],
      answers: shown(headAnswers('The head', 'this head')),
      problems: ['not-ready', 'changes-unsupported', ...PROBLEMS],
      handler: async ({ request, client }) => {
        assertReads(client);
        const newest = await editions.newest(name, request.signal);
        if (newest && 'head' in newest) return head(newest.head, HEAD_CACHING);
        throw notReady(name, newest);
      },
    },
    kept: {
      ...shared,
      method: 'GET',
      path: `/${name}/edition/{name}`,
      cost: 'page',
      id: idOf('getKeptEditionOf', resource),
      summary: `Get the head of an edition of ${name} that is kept`,
      parameters: { name: { type: 'string', minLength: 1, description: 'the name of the edition' } },
      headers: ['If-None-Match'],
      answers: shown(headAnswers('The head, as it was first published', 'this head')),
      problems: ['not-found', 'invalid-url', 'insufficient-storage', ...PROBLEMS],
      handler: async ({ client, parameters: { name: edition = '' } }) => {
        assertReads(client);
        const path = `${name}/edition/${edition}.json`;
        const bytes = isEditionName(edition) ? await editions.objects.get(path) : null;
        if (bytes) return head(bytes, IMMUTABLE_CACHING);
        throw new AppError('not-found', `No edition of ${name} that is kept has the name ${quote(edition)}.`);
      },
    },
    file: {
      ...shared,
      method: 'GET',
      path: `/${name}/chunks/{file}`,
      cost: 'download',
      id: idOf('getEditionFileOf', resource),
      summary: `Get a file of the editions of ${name}, or a range of it`,
      description:
        'A chunk, a delta or an index file. Its name has the SHA-256 of its rows, lines or bytes, and says how it is compressed: there is no Content-Encoding.',
      parameters: { file: { type: 'string', minLength: 1, description: 'the name of the file' } },
      headers: ['Range', 'If-Range', 'If-None-Match'],
      answers: shown({
        200: {
          description: 'The whole file',
          headers: HEADERS,
          sometimes: ['Accept-Ranges', 'Repr-Digest'],
          content: { ...OF_ROWS, [JSON_TYPE]: { schema: EDITION_INDEX } },
        },
        206: {
          description: 'The requested range of a chunk or a delta',
          headers: [...HEADERS, 'Accept-Ranges', 'Content-Range'],
          sometimes: ['Repr-Digest'],
          content: OF_ROWS,
        },
        304: notModified('this file'),
      }),
      problems: [
        ...(['not-found', 'invalid-url', 'range-not-satisfiable'] as const),
        ...(['insufficient-storage', 'too-many-streams'] as const),
        ...PROBLEMS,
      ],
      handler: async ({ client, parameters: { file: asked = '' } }) => {
        assertReads(client);
        const path = `${name}/chunks/${asked}`;
        const length = isEditionFile(asked) ? await editions.objects.size(path) : null;
        if (length === null)
          throw new AppError('not-found', `The editions of ${name} have no file ${quote(asked)}.`);
        // Another compressor makes other bytes of the same rows.
        const body = bodyAt(path, length, editions);
        const isJson = typeOfFile(asked) === JSON_TYPE;
        const reply = file(
          path,
          isJson ? { kind: 'stream', length, run: (sink) => body.write(sink, 0, length) } : body,
          `"${asked}.${length}"`,
          IMMUTABLE_CACHING,
        );
        return { ...reply, headers: { ...reply.headers, ...digestOf(asked) } };
      },
    },
    make: {
      ...shared,
      access: 'keyed',
      right: 'export',
      method: 'POST',
      path: `/${name}/edition`,
      cost: 'write',
      id: idOf('makeEditionOf', resource),
      summary: `Make an edition of ${name} now`,
      answers: {
        202: {
          description: 'It is going to be made, and will be found at Location',
          headers: ['Location', 'Retry-After', 'Cache-Control'],
        },
      },
      problems: ['forbidden', 'changes-unsupported', 'insufficient-storage', ...STORE_PROBLEMS],
      handler: async ({ request, client }) => {
        assertWhole(resource, client);
        await editions.make(name, request.signal);
        const location = `${request.notes.mount}/${name}/edition`;
        return empty(202, { ...NOT_STORED, location, 'retry-after': String(LOOK_AGAIN_SECONDS) });
      },
    },
  } satisfies Record<string, Route>;
}

/** The route of a resource without editions, which says how they are declared. */
export function noEditionRoute({ name, form }: Pick<Resource, 'name' | 'form'>): Route {
  return {
    method: 'GET',
    path: `/${name}/edition`,
    access: 'keyed',
    right: 'stream',
    cost: 'page',
    id: idOf('getEditionOf', { form }),
    tag: 'Editions',
    summary: `Says how editions of ${name} are declared`,
    answers: {},
    problems: ['no-edition'],
    handler: () => {
      const member = `"editions": {}`;
      throw new AppError(
        'no-edition',
        `The resource ${name} has no editions. Its operator declares them by ${member} at the resource in RESOURCES_FILE, or by EDITIONS=${name}.`,
      );
    },
  };
}

function idOf(verb: string, { form }: Pick<Resource, 'form'>): string {
  return form.docs.ids.list.replace(/^list/, verb);
}

function headAnswers(description: string, known: string): Record<number, Answer> {
  return {
    200: jsonAnswer(description, EDITION_HEAD, HEADERS),
    304: notModified(known),
  };
}

/** A file of editions has all rows and fields of the resource, so a key that opens less must not have it. */
function assertWhole(resource: Resource, client: Client): void {
  const { name } = resource;
  const why = closedTo(client, resource);
  if (why === null) return;
  throw new AppError(
    'forbidden',
    `The key opens ${why} of ${name}, and the files of an edition have all of them. /${name}/stream and /${name}/changes have what the key opens.`,
  );
}

function notReady(name: string, making: MakingProgress | null): AppError {
  const { rows = 0, of = null } = making?.progress ?? {};
  const share = of === null ? '' : ` of about ${of}`;
  const state = making ? `is being made: ${rows}${share} rows are read` : 'is going to be made';
  return new AppError('not-ready', `The first edition of ${name} ${state}.`);
}

/** A name proves the bytes of files that are not compressed (RFC 9530). */
function digestOf(file: string): Reply['headers'] {
  const [, name] = /^([0-9a-f]{64})\.(?:ndjson|index\.json)$/.exec(file) ?? [];
  if (name === undefined) return {};
  return { 'repr-digest': `sha-256=:${Buffer.from(name, 'hex').toString('base64')}:` };
}

/** JSON goes out whole, as it is: a range of it is none, and a coding that is negotiated would double it in caches. */
function wholeOf(bytes: Uint8Array): Reply['body'] {
  return {
    kind: 'stream',
    length: bytes.length,
    run: async (sink) => {
      await sink.write(bytes);
    },
  };
}

function bodyAt(path: string, length: number, { objects }: Pick<Editions, 'objects'>): FileBody {
  return {
    kind: 'file',
    length,
    write: async (sink, start, end) => {
      for await (const piece of objects.read(path, start, end)) {
        const full = sink.write(piece);
        if (full) await full;
      }
    },
  };
}
