import { statSync } from 'node:fs';
import { reasonOf } from '../../error-reason.ts';
import { storeUnavailable } from '../../errors.ts';
import type { Slots } from '../slots.ts';
import { diskFull, freeBytes, isDamage, storeFault } from './errors.ts';
import type { StoreFile } from './file.ts';
import { dropSql, meta } from './layout.ts';
import { ChangeLog, type LogOptions } from './log.ts';
import { readersOf } from './log-readers.ts';
import { Looks } from './looks.ts';
import { Maintenance } from './maintenance.ts';
import { Reader } from './read.ts';
import { Sets } from './sets.ts';
import { LogWatch } from './watch.ts';
import { Writes } from './writes.ts';

/** Below this, writes are refused before they begin, so that SQLite never meets a full disk half way. Bytes. */
export const RESERVE_BYTES = 4 * 1024 * 1024;
const LOOK_AT_DISK_MS = 250;
/** Above this, readers or writers of other processes keep the write-ahead log from beginning anew. Bytes and pages. */
const LONG_LOG_BYTES = 256 * 1024 * 1024;
const LONG_LOG_PAGES = 16_384;

export interface CoreOptions extends LogOptions {
  readonly file: StoreFile;
  readonly directory: string;
  readonly slots: Slots;
  /** How many pages the write-ahead log may have before a checkpoint. */
  readonly checkpointPages: number;
  readonly onWarning: (message: string) => void;
}

/** What all sets of a file share. */
export class Core {
  readonly file: StoreFile;
  readonly sets: Sets;
  readonly looks: Looks;
  readonly writes: Writes;
  readonly maintenance: Maintenance;
  readonly reader: Reader;
  readonly log: ChangeLog;
  readonly watch: LogWatch;
  readonly #options: CoreOptions;
  #isOpen = true;
  #damage: Error | null = null;
  #diskLookedAt = -Infinity;
  #dataVersion: unknown = null;
  #hasWarned = false;

  constructor(options: CoreOptions) {
    const { file, slots } = options;
    const { connection } = file;
    this.#options = options;
    this.file = file;
    this.sets = new Sets(connection);
    this.log = new ChangeLog(connection, this.sets, options);
    const faultOf = (error: unknown) => this.#faultOf(error);
    this.looks = new Looks(connection, () => this.#check(), faultOf);
    this.reader = new Reader(connection, slots);
    this.maintenance = new Maintenance(file.path);
    this.watch = new LogWatch(() => this.#othersWrote());
    this.writes = new Writes({
      connection,
      check: () => this.#checkWritable(),
      sync: () => file.sync(),
      faultOf,
      onCommitted: () => {
        this.watch.committed();
        return this.#checkpoint();
      },
      onUndone: () => this.sets.forget(),
    });
  }

  /** The epoch of the file's history: another one after a backup was restored. */
  get epoch(): string {
    return String(meta(this.file.connection, 'epoch'));
  }

  /** The size of the write-ahead log. */
  logBytes(): number {
    return statSync(`${this.file.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Rejects when the file is damaged as far as it was read until now. */
  async ping(): Promise<void> {
    await this.looks.soon(() => meta(this.file.connection, 'format'));
    if (this.#damage) throw this.#damage;
  }

  /** Frees the space of discarded tables. */
  async sweep(): Promise<void> {
    const numbers = await this.looks.soon(() => this.sets.discarded());
    if (numbers.length === 0) return;
    await this.writes.alone(() => {
      this.#check(); // the store may have been closed meanwhile
      return this.maintenance.run(numbers.map(dropSql).join(' '));
    });
    await this.file.sync();
  }

  /** Completes the writes already requested. */
  async close(): Promise<void> {
    await this.writes.idle();
    this.#isOpen = false;
    this.watch.close();
    await this.maintenance.close();
    try {
      await this.file.close(true);
    } catch (error) {
      this.#options.onWarning(`the clean stop of the store was not noted: ${reasonOf(error)}`);
    }
  }

  /** Throws when the file cannot be read. */
  #check(): void {
    if (!this.#isOpen) throw storeUnavailable(new Error('the embedded store is closed'));
  }

  /** Translates an error of SQLite, and remembers damage. */
  #faultOf(error: unknown): unknown {
    const fault = storeFault(error, this.#options.directory);
    if (isDamage(error) && !this.#damage) {
      this.#damage = fault as Error;
      this.#options.onWarning(`the file of the store is damaged: ${reasonOf(error)}; restore a backup`);
    }
    return fault;
  }

  #checkWritable(): void {
    this.#check();
    const now = performance.now();
    if (now - this.#diskLookedAt < LOOK_AT_DISK_MS) return;
    if (freeBytes(this.#options.directory) < RESERVE_BYTES) throw diskFull();
    this.#diskLookedAt = now;
  }

  /** Moves what the write-ahead log has into the file, in a thread, when there is much of it. Writers wait meanwhile. */
  async #checkpoint(): Promise<void> {
    const { checkpointPages, onWarning } = this.#options;
    try {
      const pages = this.file.pagesInLog();
      if (pages < checkpointPages) return;
      const mode = pages > LONG_LOG_PAGES ? 'restart' : 'passive';
      await this.maintenance.run(`pragma wal_checkpoint(${mode})`);
      const bytes = this.logBytes();
      if (bytes <= LONG_LOG_BYTES || this.#hasWarned) return;
      this.#hasWarned = true;
      const [reader = 'another process'] = await readersOf(this.file.path);
      const by = typeof reader === 'number' ? `process ${reader}, which reads an old state,` : reader;
      onWarning(`the write-ahead log of the store has ${bytes} bytes: ${by} keeps it from beginning anew`);
    } catch (error) {
      onWarning(`the write-ahead log of the store was not moved into the file: ${reasonOf(error)}`);
    }
  }

  #othersWrote(): boolean {
    const before = this.#dataVersion;
    try {
      this.#dataVersion = this.file.connection.get('pragma data_version')?.data_version;
      return this.#dataVersion !== before;
    } catch {
      return true; // the look that follows says why
    }
  }
}
