import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { Cutter } from '../../../../src/base/edition/cut.ts';
import type { ChunkEntry, DeltaEntry, EditionHead } from '../../../../src/base/edition/head.ts';
import { filesOfIndex } from '../../../../src/base/edition/index-tree.ts';
import { chunkFile, deltaFile, indexFile, nameText } from '../../../../src/base/edition/names.ts';
import { crc32 } from '../../../../src/pipeline/crc32.ts';
import type { ObjectStore } from '../../../../src/store/objects.ts';
import { keyOf } from '../../resources/copy.ts';
import { cutRows } from '../../pull/editions.ts';
import { sha256 } from '../edition-maker.ts';

/** An edition whose files were all read and proved. */
export interface SeenEdition {
  readonly head: EditionHead;
  readonly chunks: readonly ChunkEntry[];
  /** Its lines by their ids, in order. */
  readonly rows: ReadonlyMap<string, string>;
}

/** A file that a server has, by its name. Null: there is no server now. */
export type FileOfServer = (name: string) => Promise<Buffer | null>;

/** Reads the editions of one resource, and asserts that each is what it says. */
export class EditionWatch {
  readonly editions = new Map<string, SeenEdition>();
  /** The deltas between editions that were both seen, which were applied. */
  deltas = 0;
  /** Heads that were looked at, each with all its files. */
  looks = 0;
  readonly #objects: ObjectStore;
  readonly #resource: string;
  readonly #fileOfServer: FileOfServer;
  readonly #seen: (edition: SeenEdition, before: SeenEdition | null) => void;
  /** Chunks that were proved, by their names. */
  readonly #texts = new Map<string, Buffer>();
  readonly #sequences = new Map<string, number>();

  /** `seen` is called with each edition once, and the one before it if that was seen. */
  constructor(
    objects: ObjectStore,
    resource: string,
    fileOfServer: FileOfServer,
    seen: (edition: SeenEdition, before: SeenEdition | null) => void,
  ) {
    this.#objects = objects;
    this.#resource = resource;
    this.#fileOfServer = fileOfServer;
    this.#seen = seen;
  }

  /** The editions that one says are kept beside it, which were seen. */
  keptOf({ head }: SeenEdition): SeenEdition[] {
    return head.kept.flatMap(({ edition }) => this.editions.get(edition) ?? []);
  }

  /** Looks at the head in the folder or bucket, and at those that it says are kept. */
  async lookAtFolder(): Promise<void> {
    const bytes = await this.#objects.get(`${this.#resource}/edition.json`);
    if (bytes) await this.look(bytes, 'the folder');
  }

  /** Looks at a head that `from` gave now. `keeps`: whether it has the editions that are kept, too; a mirror has the newest. */
  async look(bytes: Uint8Array, from: string, keeps = true): Promise<void> {
    const head = JSON.parse(Buffer.from(bytes).toString()) as EditionHead;
    const there = await this.#paths();
    const newest = this.#sequences.get(from) ?? 0;
    assert.ok(head.sequence >= newest, `${from} goes back from edition ${newest} to ${head.sequence}`);
    this.#sequences.set(from, head.sequence);
    await this.#edition(head, there);
    for (const { edition } of keeps ? head.kept : []) {
      const kept = await this.#objects.get(`${this.#resource}/edition/${edition}.json`);
      assert.ok(kept, `${from} names the edition ${edition}, which is not there`);
      await this.#edition(JSON.parse(Buffer.from(kept).toString()) as EditionHead, there);
    }
    await this.#checkDeltas(head);
    this.looks++;
  }

  /** All files that are there, by a list that begins after the head was read. */
  async #paths(): Promise<Set<string>> {
    const paths = new Set<string>();
    for await (const { path } of this.#objects.list(`${this.#resource}/chunks/`))
      paths.add(path.slice(path.lastIndexOf('/') + 1));
    return paths;
  }

  async #edition(head: EditionHead, there: ReadonlySet<string>): Promise<SeenEdition> {
    const { names, chunks } = await filesOfIndex(head.index, (name) => this.#index(name));
    const files = [
      ...names.map(indexFile),
      ...head.deltas.map(({ name }) => deltaFile(name)),
      ...chunks.flatMap(({ name, sizes }) =>
        Object.keys(sizes).map((format) => chunkFile(name, format, head.schema)),
      ),
    ];
    for (const file of files)
      assert.ok(there.has(file), `edition ${head.sequence} names ${file}, which is not there`);
    const known = this.editions.get(head.edition);
    if (known) return known;
    const made = await this.#read(head, chunks);
    this.editions.set(head.edition, made);
    const [before] = head.kept;
    this.#seen(made, (before && this.editions.get(before.edition)) ?? null);
    return made;
  }

  async #index(name: string): Promise<Uint8Array> {
    const bytes = await this.#objects.get(`${this.#resource}/chunks/${indexFile(name)}`);
    assert.ok(bytes, `the index ${name} is not there`);
    assert.equal(sha256(bytes), name, 'an index file is its name');
    return bytes;
  }

  /** Reads and proves the files of an edition. */
  async #read(head: EditionHead, chunks: readonly ChunkEntry[]): Promise<SeenEdition> {
    const texts: Buffer[] = [];
    for (const chunk of chunks) texts.push(await this.#chunk(chunk));
    const all = Buffer.concat(texts);
    const lines = all.toString().split('\n').slice(0, -1);
    const sums = { bytes: all.length, crc32: crcOf(all), rows: lines.length };
    assert.deepEqual(sums, { bytes: head.bytes, crc32: head.crc32, rows: head.rows });
    assert.equal(sha256(nameText(chunks.map(({ name }) => name))), head.edition, 'an edition is its name');
    assert.deepEqual(
      all.length === 0 ? [] : cutRows(all, head.target).map(sha256),
      chunks.map(({ name }) => name),
      'chunks end where the rule says',
    );
    const rows = new Map(lines.map((line) => [(JSON.parse(line) as { id: string }).id, line]));
    const ids = [...rows.keys()];
    assert.deepEqual(ids, ids.toSorted(), 'rows are in the order of their ids');
    assert.equal(ids.length, lines.length, 'each row comes once');
    return { head, chunks, rows };
  }

  async #chunk({ name, bytes, rows, crc32: crc, sizes }: ChunkEntry): Promise<Buffer> {
    const known = this.#texts.get(name);
    if (known) return known;
    const file = chunkFile(name, 'ndjson.gz');
    const packed =
      (await this.#fileOfServer(file)) ?? (await this.#objects.get(`${this.#resource}/chunks/${file}`));
    assert.ok(packed);
    assert.equal(packed.length, sizes['ndjson.gz'], name);
    const text = gunzipSync(packed);
    assert.equal(sha256(text), name, 'a chunk is its name');
    assert.deepEqual([text.length, crcOf(text)], [bytes, crc], name);
    assert.equal(text.toString().split('\n').length - 1, rows, name);
    this.#texts.set(name, text);
    return text;
  }

  async #checkDeltas({ edition, sequence, deltas }: EditionHead): Promise<void> {
    const [newest] = deltas;
    if (newest) assert.equal(newest.to, edition, `the newest delta leads to edition ${sequence}`);
    for (const delta of deltas) await this.#checkDelta(delta);
  }

  readonly #applied = new Set<string>();

  async #checkDelta({ from, to, name, rows, removed }: DeltaEntry): Promise<void> {
    const before = this.editions.get(from);
    const after = this.editions.get(to);
    if (!before || !after || this.#applied.has(from + to)) return;
    const file = await this.#objects.get(`${this.#resource}/chunks/${deltaFile(name)}`);
    assert.ok(file, `the delta ${name} is not there`);
    const text = gunzipSync(file);
    assert.equal(sha256(text), name, 'a delta is its name');
    const lines = text.toString().split('\n').slice(0, -1);
    assert.equal(lines.length, rows + removed);
    const copy = new Map(before.rows);
    for (const line of lines) {
      const gone = /^\{"removed":\{"id":(.*)\}\}$/.exec(line)?.[1];
      if (gone === undefined) copy.set(JSON.parse(keyOf(line)) as string, line);
      else copy.delete(JSON.parse(gone) as string);
    }
    assert.deepEqual(sorted(copy), sorted(after.rows), `the delta to edition ${after.head.sequence}`);
    this.#applied.add(from + to);
    this.deltas++;
  }
}

/** The chunks of an edition that must be in the next one: no row in them or at the bound before them is another one. */
export function untouchedChunks(before: SeenEdition, after: SeenEdition): string[] {
  const isSame = (id: string) => before.rows.get(id) === after.rows.get(id);
  const touched = [...new Set([...before.rows.keys(), ...after.rows.keys()])].filter((id) => !isSame(id));
  const { target } = before.head;
  return before.chunks
    .filter(({ first, last }, n) => {
      const bound = before.chunks[n - 1]?.last as string | undefined;
      const isFixed = bound === undefined || isBound(before.rows.get(bound) ?? '', target);
      const isLast = n === before.chunks.length - 1;
      return (
        isFixed &&
        !touched.some(
          (id) =>
            (bound === undefined || id >= bound) && (isLast || id <= (last as string)) && first !== undefined,
        )
      );
    })
    .map(({ name }) => name);
}

/** Whether a row ends a chunk, whatever is before it. */
function isBound(line: string, target: number): boolean {
  return new Cutter(target).take(Buffer.from(`${line}\n`)) >= 0;
}

const sorted = (rows: ReadonlyMap<string, string>) => [...rows.values()].toSorted();
const crcOf = (bytes: Uint8Array) => crc32(bytes).toString(16).padStart(8, '0');
