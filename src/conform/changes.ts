import { CHANGE_BEGINNINGS, LineReader, REMOVAL_BEGINNING } from '../pull/lines.ts';
import { BEGINNING, readAnswer } from '../pull/proof.ts';
import { expectStatus } from './asking.ts';
import type { Check } from './check.ts';
import { Broken, expectSame, Unseen } from './verdicts.ts';
import { keyOf, type ProvedRows, type Subject } from './subject.ts';

/** An answer of changes that ends. */
function changesOf(subject: Subject, query: Readonly<Record<string, string>> = {}): Promise<ProvedRows> {
  return subject.readUrl(subject.url('changes', query), 'none', new LineReader(CHANGE_BEGINNINGS));
}

async function now(subject: Subject): Promise<string> {
  const { lines, place, checkpoint, asked } = await changesOf(subject);
  expectSame(`the number of lines of ${asked}`, lines.length, 0);
  if (!checkpoint) throw new Broken(`${asked} has no checkpoint`);
  if (place.cursor === null) throw new Broken(`${asked} has no cursor`);
  return asked;
}

async function since(subject: Subject): Promise<string> {
  const { place } = await changesOf(subject);
  const query = { since: place.cursor ?? '', limit: '10' };
  const { place: next } = await changesOf(subject, query);
  if (next.cursor === null) throw new Broken('the end of changes has no cursor');
  await changesOf(subject, { since: next.cursor, wait: '1' });
  return 'since=, limit=10, and wait=1 behind it';
}

async function brokenPlace(subject: Subject): Promise<string> {
  const answer = await subject.ask(subject.url('changes', { since: 'broken' }));
  expectStatus(answer, 400);
  return answer.asked;
}

async function fromStream(subject: Subject): Promise<string> {
  const answer = await subject.ask(subject.url('stream'), { method: 'HEAD' });
  const cursor = answer.headers['changes-from'];
  if (typeof cursor !== 'string') throw new Broken(`${answer.asked} has no Changes-From`);
  await changesOf(subject, { since: cursor, limit: '10' });
  return 'Changes-From as since';
}

/** Follows a set until a copy of it is up to date, and compares the keys. */
async function follow(subject: Subject): Promise<string> {
  if (!(await subject.isWhole())) throw new Unseen('the set is too large to be read whole');
  const { lines } = await subject.sample();
  const url = subject.url('stream', { follow: 'true' });
  const content = await subject.content(url, 'application/x-ndjson');
  let text = '';
  let isFirst = true;
  for await (const step of readAnswer(content, BEGINNING, new LineReader(CHANGE_BEGINNINGS))) {
    if (isFirst && step.kind === 'rows') throw new Broken('the first line is no checkpoint');
    isFirst = false;
    if (step.kind === 'rows') text += Buffer.from(step.bytes).toString('latin1');
    else if (step.place.cursor === null) throw new Broken('a checkpoint has no cursor');
    else if (step.upToDate) break;
  }
  const keys = new Set<string>();
  for (const line of Buffer.from(text, 'latin1').toString().split('\n').slice(0, -1))
    if (line.startsWith(REMOVAL_BEGINNING)) keys.delete(keyOf(line.slice(REMOVAL_BEGINNING.length, -1)));
    else keys.add(keyOf(line));
  expectSame('the number of rows of a copy that is up to date', keys.size, lines.length);
  const missing = lines.find((line) => !keys.has(keyOf(line)));
  if (missing !== undefined) throw new Broken(`a copy that is up to date lacks ${missing.slice(0, 60)}`);
  return `${url.pathname}${url.search}: ${keys.size} rows`;
}

async function events(subject: Subject): Promise<string> {
  const url = subject.url('changes');
  const content = await subject.content(url, 'text/event-stream');
  let text = '';
  for await (const chunk of content) {
    text += chunk.toString();
    if (text.includes('\n\n')) break;
  }
  if (!/^event: checkpoint$/m.test(text) || !/^id: .+$/m.test(text) || !/^data: \{"checkpoint":/m.test(text))
    throw new Broken(`the first event of ${url.pathname} is no checkpoint with an id`);
  return `${url.pathname}, Accept: text/event-stream`;
}

export const CHANGE_CHECKS: readonly Check[] = [
  { promise: 'changes without since are a place', look: now },
  { promise: 'changes go on behind a place', look: since },
  { promise: 'a broken place is refused', look: brokenPlace },
  { promise: 'a stream says from where its changes follow', look: fromStream },
  { promise: 'a stream that follows begins with a place and becomes the set', look: follow },
  { promise: 'changes come as server-sent events', look: events },
];
