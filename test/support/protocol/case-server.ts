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
  readonly reads: 'rows' | 'changes';
  readonly query?: string;
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
  /** The parameters `cursor`, `since` and `limit` of each request. */
  readonly asks: readonly Readonly<Record<string, string>>[];
  readonly ends: 'whole' | 'current' | 'interrupted' | 'refused';
  readonly status?: number;
  readonly atLeastMs?: number;
}

const NDJSON = { 'content-type': 'application/x-ndjson' };

function bytesOf({ status = 200, headers = NDJSON, body, breaks }: ScriptedAnswer): Buffer {
  const head = Object.entries({ ...headers, 'transfer-encoding': 'chunked' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
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

/** A server that answers each request with the next answer of the case, byte by byte as it says, and 599 to more. */
export async function caseServer(
  t: TestContext,
  { answers }: ProtocolCase,
): Promise<{ readonly url: string; readonly asked: URL[] }> {
  const asked: URL[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.setNoDelay());
    socket.on('error', () => undefined); // a reader may leave at any time
    void once(socket, 'data').then(
      ([data]) => {
        const [, path = '/'] = String(data).split(' ');
        asked.push(new URL(path, 'http://server'));
        return send(socket, answers[asked.length - 1] ?? { status: 599, body: [] });
      },
      () => undefined,
    );
  });
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  return { url: `http://127.0.0.1:${await listening(t, server)}`, asked };
}
