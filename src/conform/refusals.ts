import { jsonIn } from '../pull/retry.ts';
import { expectStatus, objectIn, type Answer } from './asking.ts';
import type { Check } from './check.ts';
import { Broken, expectSame, Unseen } from './verdicts.ts';
import type { Subject } from './subject.ts';

/** Throws Broken unless the answer is a problem document of this code. */
function expectProblem(answer: Answer, status: number, code: string): void {
  expectStatus(answer, status);
  const type = answer.headers['content-type']?.split(';')[0];
  expectSame(`the type of ${answer.asked}`, type, 'application/problem+json');
  const problem = Object(jsonIn(answer.body.toString())) as Readonly<Record<string, unknown>>;
  expectSame(`the code of ${answer.asked}`, problem.code, code);
  expectSame(`the status in the problem of ${answer.asked}`, problem.status, status);
  for (const name of ['type', 'title', 'detail'])
    if (typeof problem[name] !== 'string') throw new Broken(`the problem of ${answer.asked} has no ${name}`);
}

/** Both pages and streams refuse this query. */
function refuses(promise: string, query: string, code: string): Check {
  const look = async (subject: Subject): Promise<string> => {
    for (const use of ['page', 'stream']) {
      const url = subject.url(use);
      url.search = query;
      expectProblem(await subject.ask(url), 400, code);
    }
    return `${query}: 400 ${code}`;
  };
  return { promise, look };
}

async function otherOrder(subject: Subject): Promise<string> {
  const { page } = objectIn(await subject.ask(subject.url('page', { limit: '1' }))) as {
    page?: { nextCursor?: unknown };
  };
  if (typeof page?.nextCursor !== 'string') throw new Unseen('the set has no rows, so no cursor');
  const query = { cursor: page.nextCursor, sort: 'id_desc' };
  expectProblem(await subject.ask(subject.url('page', query)), 400, 'cursor-mismatch');
  return 'a cursor of id_asc with sort=id_desc: 400 cursor-mismatch';
}

async function notFound(subject: Subject): Promise<string> {
  const answer = await subject.ask(subject.url('page', {}, '/stream/no-such-path'));
  expectProblem(answer, 404, 'not-found');
  return answer.asked;
}

/** SEARCH is safe by its definition (RFC 5323): a server that knows it changes nothing. */
async function otherMethod(subject: Subject): Promise<string> {
  const answer = await subject.ask(subject.url('page'), { method: 'SEARCH' });
  expectProblem(answer, 405, 'method-not-allowed');
  if (!/\bGET\b/.test(answer.headers.allow ?? '')) throw new Broken(`${answer.asked} has no Allow with GET`);
  return `${answer.asked}: 405, Allow: ${answer.headers.allow}`;
}

async function otherType(subject: Subject): Promise<string> {
  for (const use of ['page', 'stream'])
    expectProblem(
      await subject.ask(subject.url(use), { headers: { accept: 'image/png' } }),
      406,
      'not-acceptable',
    );
  return 'Accept: image/png';
}

const TOO_LARGE = 2 * 1024 * 1024;

/** The body has nothing but spaces: a server without a limit finds no order in it. */
async function largeBody(subject: Subject): Promise<string> {
  const headers = { 'content-type': 'application/json', 'content-length': String(TOO_LARGE) };
  const answer = await subject.ask(subject.url('exports'), {
    method: 'POST',
    headers,
    body: Buffer.alloc(TOO_LARGE, ' '),
  });
  expectProblem(answer, 413, 'body-too-large');
  return `${answer.asked} with ${TOO_LARGE} spaces`;
}

async function otherKey(subject: Subject): Promise<string> {
  if (subject.key === null) throw new Unseen('no key was given');
  const answer = await subject.ask(subject.url('page'), { headers: { authorization: 'Bearer no-such-key' } });
  expectProblem(answer, 401, 'unauthorized');
  if (answer.headers['www-authenticate'] === undefined)
    throw new Broken(`${answer.asked} has no WWW-Authenticate`);
  return `${answer.asked} with another key: 401`;
}

export const REFUSAL_CHECKS: readonly Check[] = [
  refuses('an unknown parameter is refused', 'no-such-parameter=1', 'unknown-parameter'),
  refuses('a parameter given twice is refused', 'limit=1&limit=2', 'duplicate-parameter'),
  refuses('a limit that is none is refused', 'limit=0', 'invalid-parameter'),
  refuses('a broken cursor is refused', 'cursor=broken', 'invalid-cursor'),
  { promise: 'a cursor of another order is refused', look: otherOrder },
  { promise: 'a path that does not exist is 404', look: notFound },
  { promise: 'another method is 405 with Allow', look: otherMethod },
  { promise: 'a type that no rows have is 406', look: otherType },
  { promise: 'a body that is too large is 413', look: largeBody },
  { promise: 'another key is 401', look: otherKey },
];
