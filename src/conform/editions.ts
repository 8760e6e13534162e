import { createHash } from 'node:crypto';
import { reasonOf } from '../base/error-reason.ts';
import { Cutter } from '../base/edition/cut.ts';
import type { ChunkEntry, EditionHead, IndexEntry } from '../base/edition/head.ts';
import { chunkFile, indexFile } from '../base/edition/names.ts';
import { sha256 } from '../pull/edition/edition-run.ts';
import { EditionSum } from '../pull/edition/edition-sum.ts';
import { headIn, indexIn, isOfEntry } from '../pull/edition/read-head.ts';
import { crc32 } from '../pipeline/crc32.ts';
import { decompress } from '../pull/http.ts';
import { CHANGE_BEGINNINGS, LineReader, REMOVAL_BEGINNING } from '../pull/lines.ts';
import { jsonIn } from '../pull/retry.ts';
import { ask, expectStatus, objectIn, type Answer, type Question } from './asking.ts';
import type { Check } from './check.ts';
import { keyOf, type Subject } from './subject.ts';
import { Broken, expectSame, Unseen } from './verdicts.ts';

/** The most bytes of rows that are read of an edition. */
const MOST_BYTES = 64 * 1024 * 1024;
/** What a chunk of one row may have more than that. */
const MOST_CHUNK = 4 * MOST_BYTES;
const RANGE_END = 9;
const NO_EDITION = '0'.repeat(64);
/** The formats that are read, and their codings. */
const CODINGS: Readonly<Record<string, 'gz' | 'br' | null>> = {
  'ndjson.gz': 'gz',
  'ndjson.br': 'br',
  ndjson: null,
};

/** The newest edition of a resource. */
class Edition {
  readonly head: EditionHead;
  readonly answer: Answer;
  readonly #subject: Subject;
  readonly #url: URL;

  private constructor(subject: Subject, url: URL, answer: Answer, head: EditionHead) {
    this.#subject = subject;
    this.#url = url;
    this.answer = answer;
    this.head = head;
  }

  /** Rejects with Unseen where there is none yet. */
  static async of(subject: Subject): Promise<Edition> {
    const url = subject.url('edition');
    const answer = await subject.ask(url);
    if (answer.status === 503) throw new Unseen('the first edition is not made yet');
    const head = headIn(objectIn(answer));
    if (head) return new Edition(subject, url, answer, head);
    throw new Broken(`${answer.asked} answered with no head`);
  }

  /** Asks for a file. A key goes to the server alone. */
  ask(name: string, question: Question = {}): Promise<Answer> {
    const url = new URL(name, new URL(this.head.files, this.#url));
    return url.origin === this.#url.origin ? this.#subject.ask(url, question) : ask(url, question);
  }

  /** All chunks, in order. Rejects with Broken when an index file is not what its name and its entry say. */
  async chunks(index: readonly IndexEntry[] = this.head.index): Promise<readonly ChunkEntry[]> {
    const chunks: ChunkEntry[] = [];
    for (const entry of index) {
      const answer = await this.#whole(indexFile(entry.name));
      expectSame(`the SHA-256 of ${answer.asked}`, digestOf(answer.body), entry.name);
      const file = indexIn(jsonIn(answer.body.toString()), entry.level);
      if (!file || !isOfEntry(file, entry)) throw new Broken(`${answer.asked} is not what its entry says`);
      chunks.push(...('chunks' in file ? file.chunks : await this.chunks(file.index)));
    }
    return chunks;
  }

  get format(): string {
    const format = this.head.formats.find((one) => one in CODINGS);
    if (format === undefined) throw new Unseen('the edition has no chunks of NDJSON');
    return format;
  }

  /** The rows of a chunk. Rejects with Broken when they are not what its name and its entry say. */
  async rowsOf({ name, rows, bytes, crc32: crc, sizes }: ChunkEntry): Promise<Buffer> {
    const { format } = this;
    const answer = await this.#whole(chunkFile(name, format));
    expectSame(`the length of ${answer.asked}`, answer.body.length, sizes[format]);
    const text = await decoded(answer, format);
    expectSame(`the SHA-256 of the rows of ${answer.asked}`, digestOf(text), name);
    expectSame(`the number of bytes in ${answer.asked}`, text.length, bytes);
    expectSame(`the CRC-32 of ${answer.asked}`, crc32(text).toString(16).padStart(8, '0'), crc);
    expectSame(`the number of rows in ${answer.asked}`, linesOf(text).length, rows);
    return text;
  }

  /** The rows of the first chunks, as many as are read. `isWhole`: they are all. */
  async rows(): Promise<{ readonly chunks: readonly Buffer[]; readonly isWhole: boolean }> {
    const chunks: Buffer[] = [];
    let left = MOST_BYTES;
    const all = await this.chunks();
    for (const chunk of all) {
      if ((left -= chunk.bytes) < 0 && chunks.length > 0) break;
      chunks.push(await this.rowsOf(chunk));
    }
    return { chunks, isWhole: chunks.length === all.length };
  }

  async #whole(name: string): Promise<Answer> {
    const answer = await this.ask(name);
    expectStatus(answer, 200);
    expectSame(`Content-Encoding of ${answer.asked}`, answer.headers['content-encoding'], undefined);
    return answer;
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function decoded({ asked, body }: Answer, format: string): Promise<Buffer> {
  const coding = CODINGS[format] ?? null;
  if (coding === null) return body;
  try {
    return await decompress(body, coding, MOST_CHUNK);
  } catch (error) {
    throw new Broken(`${asked}: ${reasonOf(error)}`);
  }
}

function linesOf(text: Buffer): readonly string[] {
  return text.toString().split('\n').slice(0, -1);
}

async function proof(subject: Subject): Promise<string> {
  const edition = await Edition.of(subject);
  const sum = new EditionSum(sha256());
  for (const chunk of await edition.chunks()) sum.add(chunk);
  sum.check(edition.head);
  const { chunks } = await edition.rows();
  return `${edition.answer.asked}: ${edition.head.rows} rows, ${chunks.length} chunks were read`;
}

async function bounds(subject: Subject): Promise<string> {
  const edition = await Edition.of(subject);
  const { chunks, isWhole } = await edition.rows();
  const cutter = new Cutter(edition.head.target);
  for (const [n, chunk] of chunks.entries()) {
    const isLast = isWhole && n === chunks.length - 1;
    const end = cutter.take(chunk);
    if (end !== chunk.length && !(isLast && end === -1))
      throw new Broken(`chunk ${n + 1} ends where no bound is, or behind one`);
  }
  return `${chunks.length} chunks, target ${edition.head.target}`;
}

/** But for what has changed since the edition was made. Changes are read last, so that they have all of it. */
async function sameRows(subject: Subject): Promise<string> {
  if (!(await subject.isWhole())) throw new Unseen('the set is too large to be read whole');
  const edition = await Edition.of(subject);
  const { chunks } = await edition.rows();
  const { lines } = await subject.sample();
  const url = subject.url('changes', { since: edition.head.changes });
  const { lines: changed, asked } = await subject.readUrl(url, 'none', new LineReader(CHANGE_BEGINNINGS));
  const rowIn = (line: string) =>
    line.startsWith(REMOVAL_BEGINNING) ? line.slice(REMOVAL_BEGINNING.length, -1) : line;
  const touched = new Set(changed.map((line) => keyOf(rowIn(line))));
  const left = (all: readonly string[]) => all.filter((line) => !touched.has(keyOf(line))).join('\n');
  const found = linesOf(Buffer.concat(chunks));
  if (left(found) !== left(lines))
    throw new Broken(`an edition has other rows than the stream, but for the changes of ${asked}`);
  return `${found.length} rows, ${touched.size} keys changed since`;
}

async function headTag(subject: Subject): Promise<string> {
  const { answer } = await Edition.of(subject);
  const { etag } = answer.headers;
  if (etag?.startsWith('"') !== true) throw new Broken(`${answer.asked} has no strong ETag`);
  const again = await subject.ask(subject.url('edition'), { headers: { 'if-none-match': etag } });
  if (again.status === 200 && again.headers.etag !== etag) throw new Unseen('the edition was just replaced');
  expectStatus(again, 304);
  const other = await subject.ask(subject.url('edition'), { headers: { 'if-none-match': '"other"' } });
  expectStatus(other, 200);
  return answer.asked;
}

async function ranges(subject: Subject): Promise<string> {
  const edition = await Edition.of(subject);
  const [chunk] = await edition.chunks();
  if (!chunk) throw new Unseen('the edition has no rows');
  const name = chunkFile(chunk.name, edition.format);
  const whole = await edition.ask(name);
  const { etag = '', 'cache-control': caching = '' } = whole.headers;
  if (!caching.includes('immutable')) throw new Broken(`Cache-Control of ${whole.asked} is ${caching}`);
  const part = await edition.ask(name, { headers: { range: `bytes=0-${RANGE_END}` } });
  expectStatus(part, 206);
  const length = Math.min(RANGE_END + 1, whole.body.length);
  expectSame(
    `Content-Range of ${part.asked}`,
    part.headers['content-range'],
    `bytes 0-${length - 1}/${whole.body.length}`,
  );
  if (!part.body.equals(whole.body.subarray(0, length)))
    throw new Broken(`a range of ${part.asked} has other bytes than the whole file`);
  expectStatus(await edition.ask(name, { headers: { 'if-none-match': etag } }), 304);
  return whole.asked;
}

async function unknown(subject: Subject): Promise<string> {
  const edition = await Edition.of(subject);
  const kept = await subject.ask(subject.url('edition', {}, `/${edition.head.edition}`));
  expectSame(`the edition of ${kept.asked}`, headIn(objectIn(kept))?.edition, edition.head.edition);
  const other = await subject.ask(subject.url('edition', {}, `/${NO_EDITION}`));
  expectStatus(other, 404);
  expectStatus(await edition.ask(indexFile(NO_EDITION)), 404);
  return `${kept.asked}, and another name`;
}

export const EDITION_CHECKS: readonly Check[] = [
  { promise: 'an edition and its files are what their names say', look: proof },
  { promise: 'chunks end where the rule says', look: bounds },
  { promise: 'an edition has the rows of the stream', look: sameRows },
  { promise: 'the head of an edition has an ETag, and an unchanged one is 304', look: headTag },
  { promise: 'files of editions never change, and are sent in ranges', look: ranges },
  { promise: 'an edition is found by its name, and another name is 404', look: unknown },
];
