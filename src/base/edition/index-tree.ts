import { createHash } from 'node:crypto';
import type { ChunkEntry, IndexEntry, IndexFile } from './head.ts';

/** An index file ends behind an entry whose name begins so low, about one of so many. */
const MEAN_ENTRIES = 256;
const MOST_ENTRIES = 1_000;
/** The most index files that a head names. */
const MOST_IN_HEAD = 256;

/** The index files of an edition. */
interface IndexTree {
  /** Those that the head names, in order. */
  readonly index: readonly IndexEntry[];
  /** The bytes of all files, of every level, by their names. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/**
 * Lists chunks in index files, and these in others, until the head can name the rest. Bounds belong to the names of the
 * entries, so a chunk that changes changes one file of each level, or two.
 */
export function indexTree(chunks: readonly ChunkEntry[]): IndexTree {
  const files = new Map<string, Uint8Array>();
  let index = groupsOf(chunks).map((group) =>
    fileOf({ level: 0, chunks: group }, group, group.length, files),
  );
  for (let level = 1; index.length > MOST_IN_HEAD; level++)
    index = groupsOf(index).map((group) => {
      const all = group.reduce((sum, one) => sum + one.chunks, 0);
      return fileOf({ level, index: group }, group, all, files);
    });
  return { index, files };
}

/**
 * The chunks that index files list, in order. `get`: the bytes of an index file by its name. Throws when a file is not what
 * its name says.
 */
export async function* chunksOf(
  index: readonly IndexEntry[],
  get: (name: string) => Promise<Uint8Array>,
): AsyncGenerator<ChunkEntry, void, undefined> {
  for (const { name } of index) {
    const bytes = await get(name);
    if (sha256(bytes) !== name) throw new Error(`the index file ${name} has other bytes than its name says`);
    const file = JSON.parse(Buffer.from(bytes).toString()) as IndexFile;
    if ('chunks' in file) yield* file.chunks;
    else yield* chunksOf(file.index, get);
  }
}

/** The names of all index files of an edition, of every level, and its chunks. */
export async function filesOfIndex(
  index: readonly IndexEntry[],
  get: (name: string) => Promise<Uint8Array>,
): Promise<{ readonly names: readonly string[]; readonly chunks: readonly ChunkEntry[] }> {
  const names: string[] = [];
  const chunks: ChunkEntry[] = [];
  const noted = (name: string) => {
    names.push(name);
    return get(name);
  };
  for await (const chunk of chunksOf(index, noted)) chunks.push(chunk);
  return { names, chunks };
}

function groupsOf<Entry extends { readonly name: string }>(entries: readonly Entry[]): Entry[][] {
  const groups: Entry[][] = [];
  let group: Entry[] = [];
  for (const entry of entries) {
    group.push(entry);
    if (parseInt(entry.name.slice(0, 8), 16) >= 2 ** 32 / MEAN_ENTRIES && group.length < MOST_ENTRIES)
      continue;
    groups.push(group);
    group = [];
  }
  return group.length > 0 ? [...groups, group] : groups;
}

function fileOf(
  content: IndexFile,
  entries: readonly (ChunkEntry | IndexEntry)[],
  chunks: number,
  files: Map<string, Uint8Array>,
): IndexEntry {
  const bytes = Buffer.from(`${JSON.stringify(content)}\n`);
  const name = sha256(bytes);
  files.set(name, bytes);
  const sum = (of: 'rows' | 'bytes') => entries.reduce((all, entry) => all + entry[of], 0);
  return { name, level: content.level, chunks, rows: sum('rows'), bytes: sum('bytes') };
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
