import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { listening } from '../ports.ts';

/** Bytes of a body, sent as one chunk of HTTP. */
type PieceOfBody = string | { readonly base64: string };

/** What a server sends to one request: see docs/PROTOCOL.md, Cases. */
export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: readonly PieceOfBody[];
  /** So many bytes are written at a time. */
  readonly split?: number;
  /** How it ends. Without it: as HTTP says. */
  readonly breaks?: 'cut' | 'stall';
}

export interface ProtocolCase {
  readonly name: string;
  readonly reads: 'rows' | 'changes' | 'file' | 'edition';
  readonly query?: string;
  /** What the file of the export has. */
  readonly file?: string;
  /** The export as each request for it finds it, the last one for ever. Without it: complete. */
  readonly exported?: readonly Readonly<Record<string, unknown>>[];
  /** The place from which changes are asked for. */
  readonly since?: string;
  /** Whether the reader's own time for attempts is over at once. */
  readonly givesUp?: boolean;
  /** Seconds without data after which a reader leaves. */
  readonly timeout?: number;
  /** Readers that do otherwise, and why. */
  readonly except?: Readonly<Record<string, string>>;
  readonly answers: readonly ScriptedAnswer[];
  readonly yields: readonly string[];
  /** The parameters `cursor`, `since` and `limit` of each request. Of a file and an edition: its path and headers. */
  readonly asks: readonly Readonly<Record<string, string>>[];
  readonly ends: 'whole' | 'current' | 'interrupted' | 'refused';
  readonly status?: number;
  readonly atLeastMs?: number;
}

/** A request as it came. */
export interface AskedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: ReadonlyMap<string, string>;
}

interface CaseServer {
  readonly url: string;
  /** The requests that took an answer of the case. */
  readonly asked: readonly AskedRequest[];
}

const NONE: ScriptedAnswer = { status: 599, body: [] };
const NDJSON = { 'content-type': 'application/x-ndjson' };

/** Pages of other origins may read all of it. Each request has a connection of its own. */
const EVERY = {
  'transfer-encoding': 'chunked',
  connection: 'close',
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'authorization, range, if-range, cache-control',
  'access-control-expose-headers': '*',
};

function bytesOf({ status = 200, headers = NDJSON, body, breaks }: ScriptedAnswer): Buffer {
  const head = Object.entries({ ...headers, ...EVERY }).map(([name, value]) => `${name}: ${value}`);
  const pieces = [Buffer.from(`HTTP/1.1 ${status} Scripted\r\n${head.join('\r\n')}\r\n\r\n`)];
  for (const piece of body) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece.base64, 'base64');
    pieces.push(Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n'));
  }
  if (breaks === undefined) pieces.push(Buffer.from('0\r\n\r\n'));
  return Buffer.concat(pieces);
}

async function send(socket: Socket, answer: ScriptedAnswer): Promise<void> {
  const bytes = bytesOf(answer);
  const step = answer.split ?? bytes.length;
  for (let at = 0; at < bytes.length && !socket.destroyed; at += step) {
    socket.write(bytes.subarray(at, at + step));
    await nextTurn();
  }
  if (answer.breaks !== 'stall') socket.end();
}

function requestIn(text: string): AskedRequest {
  const [first = '', ...lines] = text.split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const [name = '', ...value] = line.split(': ');
    return [name.toLowerCase(), value.join(': ')];
  });
  const [method = '', path = '/'] = first.split(' ');
  return { method, url: new URL(path, 'http://server'), headers: new Map(headers) };
}

/** The export of a case, as each request for it finds it. */
function statesOf({ file = '', exported = [{ state: 'complete' }] }: ProtocolCase): ScriptedAnswer[] {
  const facts = { url: '/exports/1/file', bytes: Buffer.byteLength(file), rows: 1, sha256: digestOf(file) };
  return exported.map((one) => ({
    headers: { 'content-type': 'application/json' },
    body: [JSON.stringify({ id: '1', file: facts, ...one })],
  }));
}

const digestOf = (file: string) => createHash('sha256').update(file).digest('hex');

/** An answer whose headers and texts name the object store, and whose headers have the digest of the file. */
function filled(answer: ScriptedAnswer, store: string, file: string): ScriptedAnswer {
  const fill = (value: string) => value.replace('{store}', store).replace('{sha256}', digestOf(file));
  const headers = Object.entries(answer.headers ?? NDJSON).map(([name, value]) => [name, fill(value)]);
  const body = answer.body.map((piece) =>
    typeof piece === 'string' ? piece.replace('{store}', store) : piece,
  );
  return { ...answer, body, headers: Object.fromEntries(headers) as Record<string, string> };
}

/**
 * A server that answers each request with the next answer of the case, byte by byte as it says, and 599 to more. The state
 * of an export is answered beside them.
 */
export async function caseServer(t: TestContext, one: ProtocolCase): Promise<CaseServer> {
  const asked: AskedRequest[] = [];
  const sockets = new Set<Socket>();
  const states = statesOf(one);
  const stateNow = (): ScriptedAnswer => {
    const [state = NONE] = states.length > 1 ? states.splice(0, 1) : states;
    return state;
  };
  let store = '';
  const answerTo = (request: AskedRequest): ScriptedAnswer => {
    if (request.method === 'OPTIONS') return { status: 200, body: [] }; // a browser asks what it may send
    if (request.url.pathname === '/exports/1') return stateNow();
    asked.push(request);
    return filled(one.answers[asked.length - 1] ?? NONE, store, one.file ?? '');
  };
  const open = async (): Promise<string> => {
    const server = createServer((socket) => {
      sockets.add(socket.setNoDelay());
      socket.on('error', () => undefined); // a reader may leave at any time
      void once(socket, 'data').then(
        ([data]) => send(socket, answerTo(requestIn(String(data)))),
        () => undefined,
      );
    });
    return `http://127.0.0.1:${await listening(t, server)}`;
  };
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const url = await open();
  if (one.reads === 'file' || one.reads === 'edition') store = await open();
  return { url, asked };
}
