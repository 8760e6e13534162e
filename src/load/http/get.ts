import type { Head } from './answer-reader.ts';
import { Connection } from './connection.ts';

export interface Answer {
  readonly head: Head;
  readonly body: Buffer;
}

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_MS = 15_000;

/** Sends one request over a connection of its own. Rejects with what cut it, or when it takes more than 15 s. */
export async function answerTo(origin: URL, request: string): Promise<Answer> {
  const connection = new Connection(origin);
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      const late = () => reject(new Error(`no answer within ${MOST_MS / 1000} s`));
      timer = setTimeout(late, MOST_MS);
      send(connection, request, resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}

/** Sends a request over a connection that is free. Rejects with what cut it. */
export function answerOver(connection: Connection, request: string): Promise<Answer> {
  return new Promise((resolve, reject) => send(connection, request, resolve, reject));
}

function send(
  connection: Connection,
  request: string,
  resolve: (answer: Answer) => void,
  reject: (reason: Error) => void,
): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let head: Head | null = null;
  connection.send(request, {
    onHead: (came) => (head = came),
    onBody: (piece) => {
      if ((bytes += piece.length) > MOST_BYTES) reject(new Error('the answer is too long'));
      else pieces.push(Buffer.from(piece));
    },
    onEnd: () => head && resolve({ head, body: Buffer.concat(pieces) }),
    onCut: reject,
  });
}

/** The JSON value of an answer. null when it is none. */
export function jsonOf({ body }: Answer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
