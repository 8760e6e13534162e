import { createHash } from 'node:crypto';
import { Cutter } from '../../base/edition/cut.ts';
import type { EditionHead } from '../../base/edition/head.ts';
import { countOf } from '../../terminal/text.ts';
import type { ProvedPlace } from '../proof.ts';
import { Refusal } from '../retry.ts';
import type { EditionFiles } from './edition-files.ts';
import { checkSums, sha256 } from './edition-run.ts';
import { EditionSum } from './edition-sum.ts';
import { inOrder } from './in-order.ts';
import { deltasFrom } from './read-head.ts';
import type { Report } from './report.ts';

/** The key of a row in a copy. */
export type RowKey = string | bigint | number | Uint8Array;

/** A copy whose rows can be brought to those of an edition, in one transaction or several. */
export interface EditionCopy {
  readonly name: string;
  readonly place: ProvedPlace;
  /** The edition that the copy was brought to last. null: it never was. Changes may have followed. */
  readonly edition: string | null;
  begin(): void;
  /** Ends the transaction. */
  commit(): void;
  /** Takes everything back since the transaction began. */
  rollback(): void;
  /** All rows in the order of their keys. */
  rows(): Iterable<{ readonly id: RowKey; readonly row: string }>;
  count(): number;
  /** Applies rows and removals in their order. */
  apply(lines: readonly string[]): void;
  /** Removes the rows from a key to a key. */
  remove(first: RowKey, last: RowKey): void;
  /** Writes down that the copy is an edition, and where its changes begin. */
  writeEdition(edition: string, place: ProvedPlace): void;
}

/** Rows of a copy that follow one another, as the rule cuts them. */
interface CopyChunk {
  readonly name: string;
  readonly first: RowKey;
  readonly last: RowKey;
  readonly bytes: number;
}

/**
 * Brings a copy to an edition: by its deltas, if they lead from the one that the copy was, and then by the chunks that the copy
 * does not have. The rows of the copy are cut by the rule of the edition: a piece whose SHA-256 is the name of a chunk is that
 * chunk, all others are removed, and the chunks that are missing are fetched. So at the end the copy is the edition's chunks,
 * each proved by its name, and nothing else. The order of the copy need not be that of the edition: it only says how many
 * chunks are found.
 */
export async function bringToEdition(
  copy: EditionCopy,
  head: EditionHead,
  files: EditionFiles,
  { report, parallel }: { readonly report: Report; readonly parallel: number },
): Promise<void> {
  // A copy that was whole never shows a part of a step. A new one keeps what it has when it is killed.
  const isWhole = copy.place.cursor !== null;
  copy.begin();
  try {
    await applyDeltas(copy, head, files);
    if (!isEdition(copy, head)) await takeChunks(copy, head, files, { report, parallel, isWhole });
    copy.writeEdition(head.edition, placeOf(head));
    copy.commit();
  } catch (error) {
    copy.rollback();
    throw error;
  }
}

function placeOf({ changes, rows, bytes, crc32 }: EditionHead): ProvedPlace {
  return { cursor: changes, rows, bytes, crc32: parseInt(crc32, 16), ended: false };
}

async function applyDeltas(copy: EditionCopy, head: EditionHead, files: EditionFiles): Promise<void> {
  const deltas = copy.edition === null ? null : deltasFrom(head, copy.edition);
  for (const delta of deltas ?? []) copy.apply(linesOf(await files.delta(head, delta)));
}

/** Whether the rows of the copy are those of an edition, in its order. */
function isEdition(copy: EditionCopy, head: EditionHead): boolean {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const chunk of cutCopy(copy, head.target)) {
    hash.update(`${chunk.name}\n`);
    bytes += chunk.bytes;
  }
  return bytes === head.bytes && hash.digest('hex') === head.edition;
}

/** The pieces of a copy by the rule of editions. */
function* cutCopy(copy: EditionCopy, target: number): Generator<CopyChunk, void, undefined> {
  const cutter = new Cutter(target);
  let hash = createHash('sha256');
  let first: RowKey | null = null;
  let last: RowKey | null = null;
  let bytes = 0;
  for (const { id, row } of copy.rows()) {
    const line = Buffer.from(`${row}\n`);
    first ??= id;
    last = id;
    bytes += line.length;
    hash.update(line);
    if (cutter.take(line) < 0) continue;
    yield { name: hash.digest('hex'), first, last, bytes };
    hash = createHash('sha256');
    first = null;
    bytes = 0;
  }
  if (first !== null && last !== null) yield { name: hash.digest('hex'), first, last, bytes };
}

async function takeChunks(
  copy: EditionCopy,
  head: EditionHead,
  files: EditionFiles,
  how: { readonly report: Report; readonly parallel: number; readonly isWhole: boolean },
): Promise<void> {
  const had = await keepChunks(copy, head, files);
  const sum = new EditionSum(sha256());
  let fetched = 0;
  const chunks = inOrder(files.chunks(head), how.parallel, async (entry, signal) => ({
    entry,
    rows: had.has(entry.name) ? null : await files.chunk(head, entry, signal),
  }));
  await how.report.showing(head.rows, async (show) => {
    for await (const { entry, rows } of chunks) {
      if (rows) {
        checkSums(entry, rows);
        copy.apply(linesOf(rows));
        fetched++;
        if (!how.isWhole) {
          copy.commit();
          copy.begin();
        }
      }
      sum.add(entry);
      show(sum.rows, sum.bytes);
    }
  });
  sum.check(head);
  if (copy.count() !== head.rows)
    throw new Refusal(
      `${copy.name} has ${countOf(copy.count(), 'row')} of the ${head.rows} of the edition: ids of different kinds look alike as JSON, so a copy would lose one of them`,
    );
  how.report.say(`${countOf(fetched, 'chunk')} of ${had.size + fetched} fetched`);
}

/** Removes all rows that are in no chunk of an edition. Resolves with the names of the chunks that the copy has. */
async function keepChunks(
  copy: EditionCopy,
  head: EditionHead,
  files: EditionFiles,
): Promise<ReadonlySet<string>> {
  const wanted = new Set<string>();
  for await (const { name } of files.chunks(head)) wanted.add(name);
  const others: CopyChunk[] = [];
  const had = new Set<string>();
  for (const chunk of cutCopy(copy, head.target))
    if (wanted.has(chunk.name)) had.add(chunk.name);
    else others.push(chunk);
  for (const { first, last } of others) copy.remove(first, last);
  return had;
}

function linesOf(bytes: Uint8Array): readonly string[] {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8').split('\n').slice(0, -1);
}
