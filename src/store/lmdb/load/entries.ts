import { KeyScratch, NO_VALUE, type Database } from '../tables.ts';
import { Appender } from './appender.ts';
import { SortedRuns, type Merged } from './runs.ts';
import { ENTRY_HEAD_BYTES, keyLength, valueLength } from './sort.ts';

/** The value of an entry in a run that takes back one entry of the same key. */
const REMOVAL = Uint8Array.of(1);

/** Sorts the entries of an index, however many, and writes them into their table. */
export class SortedEntries {
  readonly #table: Appender;
  readonly #runs: SortedRuns;
  readonly #key = new KeyScratch();
  #merged: Iterator<Merged, void> | null = null;
  #current: Merged | null = null;
  #hasRemovals = false;

  constructor(table: Database, directory: string, runBytes: number) {
    this.#table = new Appender(table);
    this.#runs = new SortedRuns(directory, runBytes);
  }

  /** Adds an entry, whose key is in these bytes. */
  add(bytes: Uint8Array, from: number, to: number): void {
    this.#runs.add(bytes, from, to, NO_VALUE);
  }

  /** Takes back an entry that was added. */
  remove(bytes: Uint8Array, from: number, to: number): void {
    this.#hasRemovals = true;
    this.#runs.add(bytes, from, to, REMOVAL);
  }

  /** In a transaction: appends the next entries, at most `most`. False when there are no more. */
  append(most: number): boolean {
    if (!this.#merged) {
      this.#merged = this.#runs.merged();
      this.#advance();
    }
    for (let left = most; left > 0; left--) {
      if (!this.#next()) return false;
      this.#table.put(this.#key, NO_VALUE);
    }
    return true;
  }

  close(): void {
    this.#runs.close();
  }

  /** Puts the next key into the scratch. False when there is none. */
  #next(): boolean {
    for (let entry = this.#current; entry; entry = this.#current) {
      const start = entry.at + ENTRY_HEAD_BYTES;
      this.#key.copy(entry.bytes, start, start + keyLength(entry, entry.at));
      let times = this.#timesOf(entry);
      this.#advance();
      if (!this.#hasRemovals) return true;
      for (let same = this.#current; same && this.#isSame(same); same = this.#current) {
        times += this.#timesOf(same);
        this.#advance();
      }
      if (times > 0) return true;
    }
    return false;
  }

  #timesOf(entry: Merged): number {
    return valueLength(entry, entry.at) === 0 ? 1 : -1;
  }

  #isSame(entry: Merged): boolean {
    const { bytes, length } = this.#key;
    if (keyLength(entry, entry.at) !== length) return false;
    const start = entry.at + ENTRY_HEAD_BYTES;
    for (let at = 0; at < length; at++) if (entry.bytes[start + at] !== bytes[at]) return false;
    return true;
  }

  #advance(): void {
    this.#current = this.#merged?.next().value ?? null;
  }
}
