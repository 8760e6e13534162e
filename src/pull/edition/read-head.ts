import type { ChunkEntry, DeltaEntry, EditionHead, IndexEntry, IndexFile } from '../../base/edition/head.ts';
import { isEditionName } from '../../base/edition/names.ts';

type Members = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isSize: Check = (value) => isCount(value) && Number(value) > 0;
const isText: Check = (value) => typeof value === 'string';
const isName: Check = (value) => typeof value === 'string' && isEditionName(value);
const isCrc: Check = (value) => typeof value === 'string' && /^[0-9a-f]{8}$/.test(value);
const isSchema: Check = (value) =>
  value === undefined || (typeof value === 'string' && /^[0-9a-f]{16}$/.test(value));
const isFolder: Check = (value) => typeof value === 'string' && value.endsWith('/');
const isList =
  (isOne: Check, most: number): Check =>
  (value) =>
    Array.isArray(value) && value.length <= most && value.every(isOne);
const isObject =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(checks).every(([name, check]) => check((value as Members)[name]));

/** The most entries of a list. A head has 256 index files, and an index file 1,000 chunks. */
const MOST_ENTRIES = 10_000;
const isSizes: Check = (value) =>
  typeof value === 'object' && value !== null && Object.values(value).every(isCount);

const isIndexEntry = isObject({
  name: isName,
  level: isCount,
  chunks: isCount,
  rows: isCount,
  bytes: isCount,
});
const isChunkEntry = isObject({
  name: isName,
  rows: isSize,
  bytes: isSize,
  crc32: isCrc,
  sizes: isSizes,
});
const isDelta = isObject({
  from: isName,
  to: isName,
  name: isName,
  rows: isCount,
  removed: isCount,
  bytes: isCount,
});
const isHead = isObject({
  edition: isName,
  resource: isText,
  at: isText,
  rows: isCount,
  bytes: isCount,
  crc32: isCrc,
  changes: isText,
  target: isSize,
  formats: isList(isText, 100),
  schema: isSchema,
  files: isFolder,
  index: isList(isIndexEntry, MOST_ENTRIES),
  deltas: isList(isDelta, MOST_ENTRIES),
  kept: isList(isObject({ edition: isName, at: isText }), MOST_ENTRIES),
});
const isChunks = isObject({ chunks: isList(isChunkEntry, MOST_ENTRIES) });
const isIndex = isObject({ index: isList(isIndexEntry, MOST_ENTRIES) });

/** The head that a value of JSON is. null: it is none. */
export function headIn(value: unknown): EditionHead | null {
  return isHead(value) ? (value as EditionHead) : null;
}

/** The index file of a level that a value of JSON is. null: it is none. */
export function indexIn(value: unknown, level: number): IndexFile | null {
  const isOne = (level === 0 ? isChunks : isIndex)(value) && (value as Members).level === level;
  return isOne ? (value as IndexFile) : null;
}

/** Whether an index file has what its entry says. */
export function isOfEntry(file: IndexFile, { chunks, rows, bytes }: IndexEntry): boolean {
  const entries: readonly (ChunkEntry | IndexEntry)[] = 'chunks' in file ? file.chunks : file.index;
  const sum = (of: (entry: ChunkEntry | IndexEntry) => number) =>
    entries.reduce((total, entry) => total + of(entry), 0);
  const own = sum((entry) => ('chunks' in entry ? entry.chunks : 1));
  const isBelow = 'chunks' in file || file.index.every(({ level }) => level === file.level - 1);
  return (
    isBelow && own === chunks && sum((entry) => entry.rows) === rows && sum((entry) => entry.bytes) === bytes
  );
}

/** The deltas that lead from an edition to that of the head, in the order in which they apply. null: there are none. */
export function deltasFrom(head: EditionHead, edition: string): readonly DeltaEntry[] | null {
  const chain: DeltaEntry[] = [];
  for (let to = head.edition; to !== edition;) {
    const delta = head.deltas.find((one) => one.to === to);
    if (!delta || chain.length > head.deltas.length) return null;
    chain.unshift(delta);
    to = delta.from;
  }
  return chain.length > 0 ? chain : null;
}
