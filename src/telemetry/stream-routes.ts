import { AppError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { count, listOf, namedObject, object, text, Type, wordOf } from '../base/schema.ts';
import { STREAM_STATES, type OpenStream } from '../http/open-streams.ts';
import { refusalOf } from '../http/permit.ts';
import { empty, json, NOT_STORED } from '../http/reply.ts';
import { requestIdOf } from '../http/request-id.ts';
import { JSON_TYPE, jsonAnswer, type Route } from '../http/route.ts';
import { serializerOf } from '../rows/serializers.ts';

export interface StreamRoutesOptions {
  /** The open streams of each process of this server. */
  readonly list: () => Promise<readonly (readonly OpenStream[])[]>;
  /** Cuts a stream of any process. Resolves with what it was then; null: there is none of this id. */
  readonly cut: (id: string) => Promise<OpenStream | null>;
  /** Gets a line for each cut: who cut what. */
  readonly log: Pick<Log, 'info'>;
}

const ID = text('the id of the stream');
const STREAM = object('an open stream', {
  id: ID,
  client: text(
    '`key:` and the name of its key, or `token:` and the subject; empty where the server wants no keys',
  ),
  route: text('the path of its route'),
  resource: text('the resource whose rows it has; empty where it is of several'),
  type: text('its media type'),
  since: Type.String({ format: 'date-time', description: 'when it began' }),
  rows: count('the rows in the answer so far'),
  bytes: count('the bytes handed to the connection so far, as sent (compressed)'),
  state: wordOf(
    STREAM_STATES,
    '`waiting`: its client takes nothing now; `following`: it sends changes as they come; `sending`: all others',
  ),
});
const STREAM_LIST = namedObject('StreamList', 'the open streams', {
  data: listOf('the open streams of all processes of this server, oldest first', STREAM),
  mayCut: Type.Boolean({ description: 'whether the client may cut a stream' }),
});
const serialize = serializerOf(STREAM_LIST);

export const STREAMS_PATH = '/metrics/streams';

/** Both are answered by an overloaded server: who relieves it needs them then. */
const SHARED = { access: 'keyed', cost: 'watch', tag: 'Server' } as const;
/** It names no right, so it is for keys without limits. */
const CUT = { ...SHARED, method: 'DELETE', path: `${STREAMS_PATH}/{id}` } as const;

/** GET /metrics/streams: the open streams of all processes, by key and resource. */
export function listStreams({ list }: StreamRoutesOptions): Route {
  return {
    ...SHARED,
    method: 'GET',
    path: STREAMS_PATH,
    right: 'metrics',
    id: 'listStreams',
    summary: 'List the open streams',
    description:
      'Lists the streams and downloads that are being sent now, of all clients. It names keys and resources, and shows no key, no query and no address.',
    produces: [JSON_TYPE],
    answers: { 200: jsonAnswer('The open streams', STREAM_LIST, ['Cache-Control']) },
    handler: async ({ client }) => {
      const data = (await list()).flat().sort((a, b) => (a.since < b.since ? -1 : 1));
      return json(200, serialize({ data, mayCut: refusalOf(client, CUT) === null }), NOT_STORED);
    },
  };
}

/** DELETE /metrics/streams/{id}: cuts a stream, so that its client sees an incomplete answer. */
export function cutStream({ cut, log }: StreamRoutesOptions): Route {
  return {
    ...CUT,
    id: 'cutStream',
    summary: 'Cut an open stream',
    description:
      'Closes the connection of the stream, so that its client sees an incomplete answer. Clients that resume may come again: a key that must not is to be removed. Needs a key without limits.',
    parameters: { id: ID },
    answers: { 204: { description: 'The stream was cut', headers: ['Cache-Control'] } },
    problems: ['not-found'],
    handler: async ({ parameters: { id = '' }, client, request }) => {
      const stream = await cut(id);
      if (!stream) throw new AppError('not-found', 'No open stream has this id: it has ended, or never was.');
      log.info({ requestId: requestIdOf(request), by: client.name, stream }, 'an operator cut a stream');
      return empty(204, NOT_STORED);
    },
  };
}
