import { CheckedPage } from '../load/page-check.ts';
import { expectStatus, objectIn, type Answer } from './asking.ts';
import type { Check } from './check.ts';
import { Broken, expectSame, Unseen } from './verdicts.ts';
import { idOf, type Subject } from './subject.ts';

interface Page {
  readonly answer: Answer;
  readonly rows: readonly string[];
  readonly hasMore: boolean;
  readonly cursor: string | null;
}

const STEP = 5;
const MOST_PAGES = 8;

async function pageOf(subject: Subject, query: Readonly<Record<string, string>>): Promise<Page> {
  const url = subject.url('page', query);
  const answer = await subject.ask(url);
  const { data, page } = objectIn(answer) as { data: unknown; page: Record<string, unknown> | undefined };
  const checked = new CheckedPage(url.pathname + url.search);
  checked.add(answer.body);
  const fault = checked.fault(null);
  const { hasMore, nextCursor: cursor } = page ?? {};
  if (fault !== null) throw new Broken(`${answer.asked}: ${fault}`);
  if (cursor !== null && typeof cursor !== 'string') throw new Broken(`${answer.asked} has no nextCursor`);
  return {
    answer,
    rows: (data as unknown[]).map((row) => JSON.stringify(row)),
    hasMore: hasMore === true,
    cursor,
  };
}

async function sampleRows(subject: Subject): Promise<readonly string[]> {
  const { lines } = await subject.sample();
  if (lines.length === 0) throw new Unseen('the set has no rows');
  return lines.slice(0, STEP * MOST_PAGES).map((line) => JSON.stringify(JSON.parse(line)));
}

/** Throws Broken at the first row that differs. */
function expectRows(asked: string, found: readonly string[], expected: readonly string[]): void {
  const at = expected.findIndex((row, n) => row !== found[n]);
  if (at !== -1)
    throw new Broken(
      `${asked}: row ${at + 1} is ${found[at]?.slice(0, 60) ?? 'missing'}, in the stream ${expected[at]?.slice(0, 60)}`,
    );
  if (found.length > expected.length)
    throw new Broken(`${asked}: ${found.length} rows, the stream has ${expected.length}`);
}

async function walk(subject: Subject): Promise<string> {
  const expected = await sampleRows(subject);
  const found: string[] = [];
  let page = await pageOf(subject, { limit: String(STEP) });
  for (let n = 1; ; n++) {
    found.push(...page.rows);
    if (!page.hasMore || n === MOST_PAGES) break;
    if (page.cursor === null) throw new Broken(`${page.answer.asked} has more, but no nextCursor`);
    page = await pageOf(subject, { limit: String(STEP), cursor: page.cursor });
  }
  expectRows('pages by cursor', found, expected);
  if (!page.hasMore && page.cursor !== null) {
    const behind = await pageOf(subject, { limit: String(STEP), cursor: page.cursor });
    expectSame('the number of rows behind the last page', behind.rows.length, 0);
  }
  return `?limit=${STEP}&cursor=: ${found.length} rows as in the stream`;
}

async function byOffset(subject: Subject): Promise<string> {
  const expected = (await sampleRows(subject)).slice(2, 2 + STEP);
  const { answer, rows } = await pageOf(subject, { limit: String(STEP), offset: '2' });
  expectRows(answer.asked, rows, expected);
  return answer.asked;
}

async function nextLink(subject: Subject): Promise<string> {
  const { answer, hasMore, cursor } = await pageOf(subject, { limit: '1' });
  const next = /<([^>]*)>\s*;\s*rel="?next"?/.exec(String(answer.headers.link ?? ''))?.[1];
  if (!hasMore) throw new Unseen('the set has one row at most');
  if (next === undefined) throw new Broken(`${answer.asked} has more, but no Link with rel="next"`);
  const given = new URL(next, subject.url('page')).searchParams.get('cursor');
  expectSame('the cursor of Link', given, cursor);
  return `${answer.asked}: Link has rel="next"`;
}

async function conditional(subject: Subject, url: URL): Promise<string> {
  const first = await subject.ask(url);
  expectStatus(first, 200);
  const { etag } = first.headers;
  if (etag === undefined) throw new Broken(`${first.asked} has no ETag`);
  const same = await subject.ask(url, { headers: { 'if-none-match': etag } });
  expectStatus(same, 304);
  expectSame('the length of the body of 304', same.body.length, 0);
  expectStatus(await subject.ask(url, { headers: { 'if-none-match': 'W/"another"' } }), 200);
  return `${first.asked}: ${etag}, 304`;
}

async function head(subject: Subject): Promise<string> {
  for (const use of ['page', 'stream']) {
    const url = subject.url(use, { limit: '1' });
    const get = await subject.ask(url);
    const answer = await subject.ask(url, { method: 'HEAD' });
    expectStatus(answer, get.status);
    for (const name of ['content-type', 'etag'])
      expectSame(`${name} of HEAD`, answer.headers[name], get.headers[name]);
    expectSame('the length of the body of HEAD', answer.body.length, 0);
  }
  return 'HEAD of a page and of a stream';
}

async function oneRow(subject: Subject): Promise<string> {
  const [line] = (await subject.sample()).lines;
  if (line === undefined) throw new Unseen('the set has no rows');
  const url = subject.url('page', {}, `/${encodeURIComponent(idOf(line))}`);
  const answer = await subject.ask(url);
  expectStatus(answer, 200);
  expectSame(answer.asked, answer.body.toString().trim(), line);
  return conditional(subject, url);
}

export const PAGE_CHECKS: readonly Check[] = [
  { promise: 'pages by cursor have the rows of the stream, each once', look: walk },
  { promise: 'pages by offset have the rows of the stream', look: byOffset },
  { promise: 'a page links to the next one', look: nextLink },
  {
    promise: 'a page has an ETag, and an unchanged one is 304',
    look: (subject) => conditional(subject, subject.url('page', { limit: '2' })),
  },
  { promise: 'HEAD has the headers of GET', look: head },
  { promise: 'one row is that of the stream, with an ETag', look: oneRow },
];
