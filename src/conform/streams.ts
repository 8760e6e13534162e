import { crc32 } from '../pipeline/crc32.ts';
import { sumOf } from '../pull/proof.ts';
import { objectIn } from './asking.ts';
import type { Check } from './check.ts';
import { Broken, expectSame, Unseen } from './verdicts.ts';
import { idOf, keyOf, type ProvedRows, type Subject } from './subject.ts';

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

async function proof(subject: Subject): Promise<string> {
  const { lines, place, asked } = await subject.sample();
  const keys = new Set(lines.map(keyOf));
  if (keys.size < lines.length) throw new Broken(`${asked}: ${lines.length} rows have ${keys.size} keys`);
  return `${asked}: ${place.rows} rows, CRC-32 ${place.crc32.toString(16).padStart(8, '0')}`;
}

/** Some rows: enough to be sent in several pieces, few enough to be read often. */
async function some(subject: Subject): Promise<readonly string[]> {
  const { lines } = await subject.sample();
  if (lines.length < 2) throw new Unseen('the set has fewer than two rows');
  return lines.slice(0, 2000);
}

async function plain(subject: Subject): Promise<string> {
  const lines = await some(subject);
  const answer = await subject.ask(subject.url('stream', { limit: String(lines.length), format: 'ndjson' }));
  expectSame(answer.asked, crc32(answer.body), crc32(Buffer.from(text(lines))));
  return answer.asked;
}

async function coded(subject: Subject): Promise<string> {
  const lines = await some(subject);
  const { place, asked } = await subject.read({ limit: String(lines.length) }, 'gzip');
  expectSame(`CRC-32 of ${asked}`, place.crc32, crc32(Buffer.from(text(lines))));
  return `${asked}, Accept-Encoding: gzip`;
}

async function asArray(subject: Subject): Promise<string> {
  const lines = await some(subject);
  const answer = await subject.ask(subject.url('stream', { limit: String(lines.length), format: 'json' }));
  const rows = objectIn(answer);
  if (!Array.isArray(rows)) throw new Broken(`${answer.asked} is no array`);
  expectSame(
    answer.asked,
    JSON.stringify(rows),
    JSON.stringify(lines.map((line): unknown => JSON.parse(line))),
  );
  return answer.asked;
}

/** Compares rows that follow `from` rows with the sample. */
async function expectRest(subject: Subject, from: number, rest: ProvedRows): Promise<void> {
  const { lines } = await subject.sample();
  const at = rest.lines.findIndex((line, n) => line !== lines[from + n]);
  if (at !== -1)
    throw new Broken(
      `${rest.asked}: row ${at + 1} is ${rest.lines[at]?.slice(0, 60)}, not row ${from + at + 1} of the set`,
    );
}

async function byCursor(subject: Subject): Promise<string> {
  const lines = await some(subject);
  const half = Math.floor(lines.length / 2);
  const first = await subject.read({ limit: String(half) });
  if (first.place.cursor === null) throw new Broken(`${first.asked}: the end line has no cursor`);
  const rest = await subject.read({ limit: String(lines.length - half), cursor: first.place.cursor });
  await expectRest(subject, half, rest);
  const joined = sumOf([first.place, rest.place]);
  expectSame('the number of rows of both', joined.rows, lines.length);
  expectSame('the combined CRC-32 of both', joined.crc32, crc32(Buffer.from(text(lines))));
  return `${half} rows and ${rest.lines.length} behind their cursor`;
}

async function byRow(subject: Subject): Promise<string> {
  const lines = await some(subject);
  const half = Math.floor(lines.length / 2);
  const rest = await subject.read({ after: idOf(lines[half - 1] ?? ''), limit: String(lines.length - half) });
  await expectRest(subject, half, rest);
  expectSame(`the number of rows of ${rest.asked}`, rest.lines.length, lines.length - half);
  return rest.asked;
}

async function byCheckpoint(subject: Subject): Promise<string> {
  const { checkpoint, lines } = await subject.sample();
  if (!checkpoint?.cursor) throw new Unseen(`no checkpoint came within ${lines.length} rows`);
  const rest = await subject.read({ cursor: checkpoint.cursor, limit: '100' });
  await expectRest(subject, checkpoint.rows, rest);
  return `behind the checkpoint at row ${checkpoint.rows}`;
}

async function partitions(subject: Subject): Promise<string> {
  const url = subject.url('partitions', { n: '3' });
  if (!(await subject.isWhole())) throw new Unseen('the set is too large to be read whole');
  const { partitions: parts } = objectIn(await subject.ask(url)) as { partitions?: { url?: string }[] };
  if (!Array.isArray(parts)) throw new Broken(`${url.pathname} has no partitions`);
  const found: string[] = [];
  for (const { url: part = '' } of parts)
    found.push(...(await subject.read(Object.fromEntries(new URL(part, url).searchParams))).lines);
  const { lines } = await subject.sample();
  expectSame('the number of rows of all parts', found.length, lines.length);
  expectSame(
    'the rows of all parts in their order',
    crc32(Buffer.from(text(found))),
    crc32(Buffer.from(text(lines))),
  );
  return `${url.pathname}?n=3: ${parts.length} parts`;
}

export const STREAM_CHECKS: readonly Check[] = [
  { promise: 'a stream proves its rows, each once', look: proof },
  { promise: 'without checkpoints a stream has the same bytes', look: plain },
  { promise: 'a compressed stream has the same bytes', look: coded },
  { promise: 'format=json is one array of the same rows', look: asArray },
  { promise: 'a stream goes on behind the cursor of an end, and the proofs combine', look: byCursor },
  { promise: 'a stream goes on behind the cursor of a checkpoint', look: byCheckpoint },
  { promise: 'a stream goes on behind any row', look: byRow },
  { promise: 'partitions are together the set', look: partitions },
];
