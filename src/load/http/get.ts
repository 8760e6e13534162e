import type { AnswerParts, Head } from './answer-reader.ts';
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
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${MOST_MS / 1000} s`)), MOST_MS);
  });
  try {
    return await Promise.race([answerOver(connection, request), late]);
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}

/** Sends a request over a connection that is free. Rejects with what cut it. */
export async function answerOver(connection: Connection, request: string): Promise<Answer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onBody = (piece: Buffer): void => {
    if ((bytes += piece.length) > MOST_BYTES) throw new Error('the answer is too long');
    pieces.push(Buffer.from(piece));
  };
  const head = await exchange(connection, request, { onBody });
  return { head, body: Buffer.concat(pieces) };
}

/**
 * Sends a request over a connection that is free, and passes its answer on as it comes (see AnswerParts). Resolves with
 * the head once the answer has ended. Rejects with what cut it, or with what a part threw, which cuts it.
 */
export function exchange(
  connection: Connection,
  request: string,
  { onHead = () => undefined, onBody }: Pick<AnswerParts, 'onBody'> & Partial<Pick<AnswerParts, 'onHead'>>,
): Promise<Head> {
  return new Promise((resolve, reject) => {
    let head: Head | null = null;
    connection.send(request, {
      onHead: (came) => {
        head = came;
        onHead(came);
      },
      onBody,
      onEnd: () => head && resolve(head),
      onCut: reject,
    });
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
