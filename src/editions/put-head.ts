import { createHash } from 'node:crypto';
import type { ChunkEntry, DeltaEntry, EditionHead } from '../base/edition/head.ts';
import { indexTree } from '../base/edition/index-tree.ts';
import { indexFile, nameText, type ChunkFormat } from '../base/edition/names.ts';
import { crc32Combine } from '../pipeline/crc32-combine.ts';
import type { Resource } from '../resources/query/resource.ts';
import { encodeFeedCursor } from '../resources/token/feed-cursor.ts';
import type { Plan } from '../store/plan.ts';
import type { DeltaLines } from './delta-lines.ts';
import type { EditionFiles } from './edition-files.ts';
import type { EditionTable, KeptPlace } from './record.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };

/** What a resource declares of its editions. */
export interface EditionForm {
  readonly formats: readonly ChunkFormat[];
  /** Bytes of a chunk. */
  readonly target: number;
  /** How many editions are kept, the newest included. */
  readonly keep: number;
  /** Where clients find the files of a resource: see `EditionHead.files`. */
  readonly filesAt: string;
}

/** The rows of an edition. */
interface Contents {
  readonly chunks: readonly ChunkEntry[];
  readonly delta: DeltaLines | null;
  readonly at: number;
  readonly made: KeptPlace;
}

interface HeadOptions {
  readonly resource: Resource;
  readonly form: EditionForm;
  readonly files: EditionFiles;
  readonly table: EditionTable | null;
  /** Whether the files of chunks are others than those of the edition before, if it has the same rows. */
  readonly isOther: boolean;
}

/**
 * Stores the index, the delta and the head of an edition. One with the rows of the edition before has its number, and a later
 * time; with other columns it is another version of the table, and has the next number.
 */
export async function putHead(
  before: EditionHead | null,
  contents: Contents,
  { resource, form, files, table, isOther }: HeadOptions,
): Promise<EditionHead> {
  const { chunks, at, made } = contents;
  const edition = createHash('sha256')
    .update(nameText(chunks.map(({ name }) => name)))
    .digest('hex');
  const isSame = before?.edition === edition;
  const isSameTable = isSame && (!table || before.schema === table.schema.name);
  const tree = indexTree(chunks);
  for (const [name, bytes] of tree.files) await files.objects.put(files.pathOf(indexFile(name)), bytes);
  const kept = keptBehind(before, edition, form.keep);
  const head: EditionHead = {
    edition,
    resource: resource.name,
    sequence: before ? before.sequence + (isSameTable ? 0 : 1) : 0,
    at: new Date(at).toISOString(),
    rows: sumOf(chunks, 'rows'),
    bytes: sumOf(chunks, 'bytes'),
    crc32: crcOf(chunks).toString(16).padStart(8, '0'),
    changes: cursorOf(resource, made),
    target: form.target,
    formats: form.formats,
    ...(table && { schema: table.schema.name }),
    files: form.filesAt,
    index: tree.index,
    deltas: isSame ? before.deltas : await deltasOf(before, contents, edition, kept, files),
    kept,
  };
  if (!isSame || isOther) await files.objects.put(files.headPath(edition), Buffer.from(JSON.stringify(head)));
  return head;
}

/** The editions that stay beside a new one. */
export function keptBehind(before: EditionHead | null, edition: string, keep: number): EditionHead['kept'] {
  const all = before ? [{ edition: before.edition, at: before.at }, ...before.kept] : [];
  return all.filter((one) => one.edition !== edition).slice(0, Math.max(0, keep - 1));
}

/** The deltas from kept editions, as far as they follow one another. */
async function deltasOf(
  before: EditionHead | null,
  { delta }: Contents,
  edition: string,
  kept: EditionHead['kept'],
  files: EditionFiles,
): Promise<readonly DeltaEntry[]> {
  const isKept = (name: string) => kept.some((one) => one.edition === name);
  const newest =
    before && delta && isKept(before.edition) ? await files.putDelta(delta, before.edition, edition) : null;
  if (!before || !newest) return [];
  const all = [newest, ...before.deltas];
  const end = all.findIndex(
    ({ from }, n) => !isKept(from) || all.slice(0, n).some((one) => one.from === from),
  );
  return end < 0 ? all : all.slice(0, end);
}

function crcOf(chunks: readonly ChunkEntry[]): number {
  return chunks.reduce((crc, one) => crc32Combine(crc, parseInt(one.crc32, 16), one.bytes), 0);
}

/** The cursor from which changes follow an edition. */
export function cursorOf({ name }: Resource, made: KeptPlace): string {
  return encodeFeedCursor(name, BY_ID, { ...made, walk: 'over' }) ?? '';
}

export function sumOf(chunks: readonly ChunkEntry[], of: 'rows' | 'bytes'): number {
  return chunks.reduce((sum, chunk) => sum + chunk[of], 0);
}
