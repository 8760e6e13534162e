import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import {
  compareEntries,
  ENTRY_HEAD_BYTES,
  keyLength,
  sortEntries,
  valueLength,
  type Entries,
} from './sort.ts';

/** All read buffers of a merge together have about this size. Bytes. */
const MERGE_BYTES = 8 * 1024 * 1024;
const [LEAST_READ, MOST_READ] = [8 * 1024, 256 * 1024];
const FIRST_OFFSETS = 4_096;
/** Longer entries are copied by a call. Bytes. */
const LARGE = 256;

/** The entry that a merge has reached. Valid until the next one. */
export interface Merged extends Entries {
  readonly at: number;
}

/** Where a sorted run is in the file. Bytes. */
interface Run {
  readonly start: number;
  readonly end: number;
}

/**
 * Sorts any number of entries with bounded memory. They gather in a buffer. When it is full, it is sorted and written
 * to a temporary file as a run. In the end the runs are merged.
 *
 * The file has no name once it is open, so the system frees it when the process ends, however that happens.
 */
export class SortedRuns {
  readonly #directory: string;
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;
  #offsets = new Uint32Array(FIRST_OFFSETS);
  #count = 0;
  readonly #runs: Run[] = [];
  #file: number | null = null;
  #fileBytes = 0;

  /** `directory`: for the temporary file; made when it is needed. `runBytes`: the memory for entries. */
  constructor(directory: string, runBytes: number) {
    this.#directory = directory;
    this.#bytes = new Uint8Array(runBytes);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Adds an entry, whose key is in these bytes. Throws the errors of the file system. */
  add(key: Uint8Array, from: number, to: number, value: Uint8Array): void {
    const size = to - from;
    const needed = ENTRY_HEAD_BYTES + size + value.length;
    if (this.#length + needed > this.#bytes.length) this.#makeRoom(needed);
    if (this.#count === this.#offsets.length) this.#offsets = doubled(this.#offsets);
    this.#offsets[this.#count++] = this.#length;
    this.#view.setUint16(this.#length, size, true);
    this.#view.setUint32(this.#length + 2, value.length, true);
    let at = this.#length + ENTRY_HEAD_BYTES;
    const bytes = this.#bytes;
    for (let n = from; n < to; n++) bytes[at++] = key[n] ?? 0;
    if (value.length > 0) this.#bytes.set(value, at);
    this.#length += needed;
  }

  /** The entries in the order of their keys. To be called once, after the last entry. */
  merged(): Generator<Merged, void, undefined> {
    if (this.#file === null) return this.#sorted();
    this.#spill();
    this.#bytes = new Uint8Array(0);
    return merge(this.#readers(this.#file));
  }

  /** Frees memory and file. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
    this.#bytes = new Uint8Array(0);
  }

  *#sorted(): Generator<Merged, void, undefined> {
    const offsets = this.#offsets.subarray(0, this.#count);
    const entries = { bytes: this.#bytes, view: this.#view };
    sortEntries(entries, offsets);
    const merged = { ...entries, at: 0 };
    for (const at of offsets) {
      merged.at = at;
      yield merged;
    }
  }

  #makeRoom(needed: number): void {
    this.#spill();
    if (needed <= this.#bytes.length) return;
    this.#bytes = new Uint8Array(needed);
    this.#view = new DataView(this.#bytes.buffer);
  }

  #spill(): void {
    if (this.#count === 0) return;
    const sorted = new Uint8Array(this.#length);
    const target = new DataView(sorted.buffer);
    let to = 0;
    for (const entry of this.#sorted()) to = copyEntry(entry, target, to);
    this.#file ??= openNameless(this.#directory);
    for (let at = 0; at < sorted.length;)
      at += writeSync(this.#file, sorted, at, sorted.length - at, this.#fileBytes + at);
    this.#runs.push({ start: this.#fileBytes, end: this.#fileBytes + sorted.length });
    this.#fileBytes += sorted.length;
    this.#length = 0;
    this.#count = 0;
  }

  #readers(file: number): RunReader[] {
    const share = Math.floor(MERGE_BYTES / this.#runs.length);
    const size = Math.max(LEAST_READ, Math.min(MOST_READ, share));
    return this.#runs.map((run) => new RunReader(file, run, size)).filter((reader) => reader.next());
  }
}

/** Copies an entry. Returns where its copy ends. Entries are short: making a view of each would cost more. */
function copyEntry({ view, at, bytes }: Merged, target: DataView, to: number): number {
  const size = ENTRY_HEAD_BYTES + view.getUint16(at, true) + view.getUint32(at + 2, true);
  if (size > LARGE) {
    new Uint8Array(target.buffer).set(bytes.subarray(at, at + size), to);
    return to + size;
  }
  let n = 0;
  for (; n + 4 <= size; n += 4) target.setUint32(to + n, view.getUint32(at + n));
  for (; n < size; n++) target.setUint8(to + n, view.getUint8(at + n));
  return to + size;
}

/** Reads the entries of a run. `at` is the current one. */
class RunReader implements Merged {
  bytes: Uint8Array;
  view: DataView;
  at = 0;
  readonly #file: number;
  #next = 0;
  #filled = 0;
  #readAt: number;
  readonly #end: number;

  constructor(file: number, { start, end }: Run, size: number) {
    this.#file = file;
    this.#readAt = start;
    this.#end = end;
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Goes to the next entry. False when there is none. */
  next(): boolean {
    this.at = this.#next;
    if (!this.#has(ENTRY_HEAD_BYTES)) return false;
    const size = ENTRY_HEAD_BYTES + keyLength(this, this.at) + valueLength(this, this.at);
    if (!this.#has(size)) throw new Error('a sorted run is cut off');
    this.#next = this.at + size;
    return true;
  }

  /** Makes sure that so many bytes follow `at`. False when the run ends before. */
  #has(size: number): boolean {
    if (this.at + size <= this.#filled) return true;
    const rest = this.bytes.subarray(this.at, this.#filled);
    if (size > this.bytes.length) {
      this.bytes = new Uint8Array(size);
      this.view = new DataView(this.bytes.buffer);
      this.bytes.set(rest);
    } else {
      this.bytes.copyWithin(0, this.at, this.#filled);
    }
    this.at = 0;
    this.#filled = rest.length;
    while (this.#filled < size && this.#readAt < this.#end) {
      const wanted = Math.min(this.bytes.length - this.#filled, this.#end - this.#readAt);
      const got = readSync(this.#file, this.bytes, this.#filled, wanted, this.#readAt);
      if (got === 0) throw new Error('a sorted run is cut off');
      this.#filled += got;
      this.#readAt += got;
    }
    return this.#filled >= size;
  }
}

/** Merges runs by a binary heap, whose first reader has the lowest key. */
function* merge(readers: RunReader[]): Generator<Merged, void, undefined> {
  for (let at = readers.length >> 1; at-- > 0;) sink(readers, at);
  for (let first = readers[0]; first; first = readers[0]) {
    yield first;
    if (!first.next()) {
      const last = readers.pop();
      if (last === undefined || last === first) return;
      readers[0] = last;
    }
    sink(readers, 0);
  }
}

function sink(heap: RunReader[], from: number): void {
  const moved = heap[from];
  if (!moved) return;
  let at = from;
  for (;;) {
    let child = 2 * at + 1;
    let lower = heap[child];
    if (!lower) break;
    const right = heap[child + 1];
    if (right && compareEntries(right, right.at, lower, lower.at) < 0) [child, lower] = [child + 1, right];
    if (compareEntries(moved, moved.at, lower, lower.at) <= 0) break;
    heap[at] = lower;
    at = child;
  }
  heap[at] = moved;
}

function doubled(offsets: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(2 * offsets.length);
  larger.set(offsets);
  return larger;
}

/** An empty file for writing and reading that no name leads to. */
function openNameless(directory: string): number {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `sort-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  rmSync(path, { force: true });
  return file;
}
