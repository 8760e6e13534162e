import { createServer, request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
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
  | { readonly status: number; readonly code: string; readonly headers?: OutgoingHttpHeaders };

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
  /** Chooses the fault of a request; null: none. */
  decide: (seen: Seen) => Fault | null;
}

export async function faultyGateway(t: TestContext, target: string): Promise<FaultyGateway> {
  const gateway = { endpoint: '', seen: [] as Seen[], decide: (): Fault | null => null };
  const server = createServer((incoming, answer) => {
    const seen = { method: incoming.method ?? '', url: incoming.url ?? '', headers: incoming.headers };
    gateway.seen.push(seen);
    const fault = (gateway as FaultyGateway).decide(seen);
    const cut = (): void => {
      incoming.socket.destroy();
    };
    if (fault === 'hang') return;
    if (fault === 'refuse') {
      cut();
      return;
    }
    if (fault !== null && typeof fault === 'object') {
      incoming.resume();
      answer.writeHead(fault.status, fault.headers ?? {});
      answer.end(`<?xml version="1.0"?><Error><Code>${fault.code}</Code><Message>as told</Message></Error>`);
      return;
    }
    const { hostname, port } = new URL(target);
    const onward = request({
      hostname,
      port,
      method: seen.method,
      path: seen.url,
      headers: incoming.headers,
    });
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
      pipeline(
        response,
        fault === 'cut-answer' ? endingAt(half, cut) : new Transform(PLAIN),
        answer,
        () => undefined,
      );
    });
    const half = Number(incoming.headers['content-length'] ?? 0) / 2;
    const changed =
      fault === 'flip' ? new Transform(FLIP) : fault === 'cut' ? endingAt(half, cut) : new Transform(PLAIN);
    pipeline(incoming, changed, onward, () => undefined);
  });
  gateway.endpoint = `http://127.0.0.1:${await listening(t, server)}`;
  return gateway;
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
): FaultyGateway['decide'] {
  let left = first;
  return (seen) => (isMeant(seen) && left-- > 0 ? fault : null);
}

export const IS = {
  part: ({ method, url }: Seen) => method === 'PUT' && url.includes('partNumber='),
  put: ({ method, url }: Seen) => method === 'PUT' && !url.includes('?'),
  begin: ({ method, url }: Seen) => method === 'POST' && url.includes('uploads='),
  complete: ({ method, url }: Seen) => method === 'POST' && url.includes('uploadId='),
  get: ({ method, headers }: Seen) => method === 'GET' && headers.range !== undefined,
  any: () => true,
} as const;
