import {
  createServer,
  request,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import { pipeline, Transform } from 'node:stream';
import type { TestContext } from 'node:test';
import { listening } from '../../ports.ts';

/** What happens to a request on its way to an object store. */
export type Fault =
  | 'refuse' // the connection is closed before a byte of the body is read
  | 'cut' // the connection is closed in the middle of the body
  | 'lose' // the store does what was asked, and its answer is lost
  | 'cut-answer' // the answer ends in the middle
  | 'flip' // a byte of the body is changed
  | 'hang' // nothing answers
  | {
      readonly status: number;
      readonly code: string;
      readonly headers?: OutgoingHttpHeaders;
      /** Further elements of the answer. */
      readonly more?: string;
    };

/** A request as the store would see it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
}

/** A proxy in front of an object store, which passes on what `decide` finds no fault for. */
export interface FaultyGateway {
  readonly endpoint: string;
  readonly seen: Seen[];
  /** Chooses the fault of a request; null: none. A promise: the request is held until it resolves. */
  decide: (seen: Seen) => Fault | null | Promise<null>;
  /** What the store gets in place of a request. */
  forward: (seen: Seen) => Seen;
}

export async function faultyGateway(t: TestContext, target: string): Promise<FaultyGateway> {
  const gateway: Omit<FaultyGateway, 'endpoint'> = { seen: [], decide: () => null, forward: (seen) => seen };
  const answered = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const seen = { method: incoming.method ?? '', url: incoming.url ?? '', headers: incoming.headers };
    gateway.seen.push(seen);
    const fault = await gateway.decide(seen);
    if (fault === 'hang') return;
    if (fault === 'refuse') incoming.socket.destroy();
    else if (fault !== null && typeof fault === 'object') refuse(fault, incoming, answer);
    else passOn(fault, gateway.forward(seen), new URL(target), incoming, answer);
  };
  const server = createServer((incoming, answer) => void answered(incoming, answer));
  return Object.assign(gateway, { endpoint: `http://127.0.0.1:${await listening(t, server)}` });
}

function refuse(
  { status, code, headers = {}, more = '' }: Exclude<Fault, string>,
  incoming: IncomingMessage,
  answer: ServerResponse,
): void {
  incoming.resume();
  answer.writeHead(status, headers);
  answer.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>as told</Message>${more}</Error>`);
}

function passOn(
  fault: Extract<Fault, string> | null,
  { method, url, headers }: Seen,
  { hostname, port }: URL,
  incoming: IncomingMessage,
  answer: ServerResponse,
): void {
  const cut = (): void => {
    incoming.socket.destroy();
  };
  const onward = request({ hostname, port, method, path: url, headers });
  onward.on('error', cut);
  onward.on('response', (response) => {
    if (fault === 'lose') {
      response.resume();
      response.on('end', cut);
      return;
    }
    if (answer.destroyed) {
      response.destroy(); // the client has left meanwhile
      return;
    }
    answer.writeHead(response.statusCode ?? 0, response.headers);
    const half = Number(response.headers['content-length'] ?? 0) / 2;
    const through = fault === 'cut-answer' ? endingAt(half, cut) : new Transform(PLAIN);
    pipeline(response, through, answer, () => undefined);
  });
  const half = Number(incoming.headers['content-length'] ?? 0) / 2;
  const changed =
    fault === 'flip' ? new Transform(FLIP) : fault === 'cut' ? endingAt(half, cut) : new Transform(PLAIN);
  pipeline(incoming, changed, onward, () => undefined);
}

type Options = ConstructorParameters<typeof Transform>[0];
const PLAIN: Options = { transform: (chunk, _, done) => done(null, chunk) };
const FLIP: Options = {
  transform: (chunk: Buffer, _, done) => {
    const changed = Buffer.from(chunk);
    changed.writeUInt8((changed[0] ?? 0) ^ 1);
    done(null, changed);
  },
};

/** Passes on about so many bytes, and then calls `end`. */
function endingAt(most: number, end: () => void): Transform {
  let bytes = 0;
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      bytes += chunk.length;
      if (bytes <= most) done(null, chunk);
      else end();
    },
  });
}

/** Chooses a fault for the `first` requests of a kind, and none for others. */
export function firstOf(
  first: number,
  isMeant: (seen: Seen) => boolean,
  fault: Fault,
): (seen: Seen) => Fault | null {
  let left = first;
  return (seen) => (isMeant(seen) && left-- > 0 ? fault : null);
}

export const IS = {
  part: ({ method, url }: Seen, number: number | '' = '') =>
    method === 'PUT' && url.includes(`partNumber=${number}`),
  put: ({ method, url }: Seen) => method === 'PUT' && !url.includes('?'),
  begin: ({ method, url }: Seen) => method === 'POST' && url.includes('uploads='),
  complete: ({ method, url }: Seen) => method === 'POST' && url.includes('uploadId='),
  get: ({ method, headers }: Seen) => method === 'GET' && headers.range !== undefined,
  any: () => true,
} as const;
