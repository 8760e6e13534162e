/**
 * The limit of the HTTP side: uWebSockets.js alone, which writes bytes prepared in memory. The bytes are the
 * answer of sluice itself, fetched from UPSTREAM once, when a path is first requested.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as uws from 'uWebSockets.js';
import { readConfig } from '../../src/settings/config.ts';
import { corked } from '../../src/engine/cork.ts';
import { loadAddon } from '../../src/engine/uws/addon.ts';

/**
 * One write for each cork, with at most this many bytes including head and frame. More corrupts bodies under
 * backpressure.
 */
const CHUNK_BYTES = 15_600;
/** An answer with more pieces than this is sent as a stream. */
const MOST_PIECES = 4;

type Addon = Pick<typeof uws, 'App' | 'us_socket_local_port'>;

interface Answer {
  readonly type: string;
  readonly chunks: readonly Buffer[];
}

const upstream = process.env.UPSTREAM ?? '';
const answers = new Map<string, Answer>();

function load(): Addon {
  const folder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
  const file = join(folder, `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`);
  return loadAddon({ file, cacheDirectory: readConfig(process.env).cacheDirectory }) as Addon;
}

async function fetchAnswer(path: string): Promise<Answer> {
  const response = await fetch(upstream + path, { headers: { 'accept-encoding': 'identity' } });
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
  const body = Buffer.from(await response.arrayBuffer());
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length; at += CHUNK_BYTES) chunks.push(body.subarray(at, at + CHUNK_BYTES));
  const answer = { type: response.headers.get('content-type') ?? '', chunks };
  answers.set(path, answer);
  return answer;
}

/** Writes until the socket is full, and continues when it has room. */
function send(response: uws.HttpResponse, { type, chunks }: Answer, isOpen: () => boolean): void {
  let next = 0;
  const write = (): boolean => {
    while (isOpen()) {
      if (next === chunks.length) {
        response.cork(() => {
          response.end();
        });
        return true;
      }
      const taken = corked(response, () => {
        if (next === 0) response.writeHeader('content-type', type);
        return response.write(chunks[next++] ?? '');
      });
      if (!taken) return false;
    }
    return false;
  };
  response.onWritable(write);
  write();
}

/** Sends a page in one piece, with its length. */
function reply(response: uws.HttpResponse, answer: Answer, isOpen: () => boolean): void {
  const [first] = answer.chunks;
  if (answer.chunks.length > MOST_PIECES) {
    send(response, answer, isOpen);
    return;
  }
  const body = answer.chunks.length === 1 && first ? first : Buffer.concat(answer.chunks);
  response.cork(() => {
    response.writeHeader('content-type', answer.type).end(body);
  });
}

const addon = load();
const app = addon.App();
app.get('/*', (response, request) => {
  const query = request.getQuery() as string | undefined; // undefined without a question mark, unlike its type
  const path = query === undefined ? request.getUrl() : `${request.getUrl()}?${query}`;
  let open = true;
  const isOpen = () => open;
  response.onAborted(() => {
    open = false;
  });
  const ready = answers.get(path);
  if (ready) {
    reply(response, ready, isOpen);
    return;
  }
  fetchAnswer(path).then(
    (answer) => {
      if (open) reply(response, answer, isOpen);
    },
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      if (open) response.close();
    },
  );
});
app.listen('127.0.0.1', 0, (socket) => {
  if (!socket) throw new Error('no port to listen on');
  const url = `http://127.0.0.1:${addon.us_socket_local_port(socket)}`;
  process.stdout.write(`${JSON.stringify({ msg: 'listening', url })}\n`);
});
