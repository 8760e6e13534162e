import { request as requestPlain, type IncomingHttpHeaders } from 'node:http';
import { request as requestTls } from 'node:https';
import { jsonIn } from '../pull/retry.ts';
import { Broken } from './verdicts.ts';

/** A whole answer. */
export interface Answer {
  /** What was asked, for messages. */
  readonly asked: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

const TIMEOUT_MS = 60_000;
const MOST_BYTES = 256 * 1024 * 1024;

/** Sends one request over a connection of its own. Rejects with Broken when the answer is cut, late or endless. */
export function ask(url: URL, { method = 'GET', headers = {}, body }: Question): Promise<Answer> {
  const asked = `${method} ${url.pathname}${url.search}`;
  const requestOf = url.protocol === 'https:' ? requestTls : requestPlain;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Broken(`${asked}: ${why}`));
    const request = requestOf(url, { method, headers, agent: false, signal });
    request.on('error', (error) => fail(error.message));
    request.on('response', (response) => {
      const pieces: Buffer[] = [];
      let bytes = 0;
      response.on('data', (piece: Buffer) => {
        pieces.push(piece);
        if ((bytes += piece.length) > MOST_BYTES) request.destroy(new Error('the answer is too long'));
      });
      response.on('error', (error) => fail(error.message));
      response.on('end', () => {
        const { statusCode: status = 0, headers: came, complete } = response;
        if (complete) resolve({ asked, status, headers: came, body: Buffer.concat(pieces) });
        else fail('the answer was cut');
        request.destroy(); // a server may wait for the rest of a body that it has refused
      });
    });
    request.end(body);
  });
}

/** Throws Broken for another status. */
export function expectStatus({ asked, status }: Answer, expected: number): void {
  if (status !== expected) throw new Broken(`${asked} answered ${status}, not ${expected}`);
}

/** The object in a whole answer with 200. Throws Broken when it is none. */
export function objectIn(answer: Answer): Readonly<Record<string, unknown>> {
  expectStatus(answer, 200);
  const value = jsonIn(answer.body.toString());
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw new Broken(`${answer.asked} answered with no JSON`);
}
