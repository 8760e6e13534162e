import { statSync } from 'node:fs';
import { reasonOf } from '../../error-reason.ts';
import { storeUnavailable } from '../../errors.ts';
import type { Slots } from '../slots.ts';
import { BackgroundCheck } from './background-check.ts';
import { diskFull, freeBytes, isDamage, RESERVE_BYTES, storeFault, storeReplaced } from './errors.ts';
import type { StoreFile } from './file.ts';
import { Epochs } from './epochs.ts';
import { dropSql, meta } from './layout.ts';
import { changeLog, type LogOptions } from './log.ts';
import { looksAt } from './looks.ts';
import { maintenanceOf } from './maintenance.ts';
import { Reader } from './read.ts';
import { Sets } from './sets.ts';
import { logWatch } from './watch.ts';
import { Writes } from './writes.ts';

const LOOK_AT_DISK_MS = 250;
/** Above this, readers or writers of other processes keep the write-ahead log from beginning anew. Bytes and pages. */
const LONG_LOG_BYTES = 256 * 1024 * 1024;
const LONG_LOG_PAGES = 16_384;
/** How often to look whether the file is still in its place. Milliseconds. */
const LOOK_AT_PLACE_MS = 1_000;

interface CoreOptions extends LogOptions {
  readonly file: StoreFile;
  readonly directory: string;
  readonly slots: Slots;
  /** How many pages the write-ahead log may have before a checkpoint. */
  readonly checkpointPages: number;
  /** Rows per transaction. Absent: as many as block the event loop for a few milliseconds. */
  readonly transactionRows?: number | undefined;
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
}

export type Core = ReturnType<typeof coreOf>;

export function coreOf(options: CoreOptions) {
  const { file, directory, slots, onWarning } = options;
  const { connection } = file;
  let isOpen = true;
  let damage: unknown = null;
  let diskLookedAt = -Infinity;
  let dataVersion: unknown = null;
  let hasWarned = false;
  let isReplaced = false;
  let nextCheckpoint = options.checkpointPages;

  const sets = new Sets(connection);
  const log = changeLog(connection, sets, options);
  const epochs = new Epochs({
    connection,
    sets,
    lastOf: (set) => log.state(set).last,
    ttlMs: options.ttlMs,
    wallClock: options.wallClock,
  });
  const looks = looksAt(connection, check, faultOf);
  const maintenance = maintenanceOf(file.path);
  const background = new BackgroundCheck({
    ...{ path: file.path, connection, looks, sets, onWarning },
    wallClock: options.wallClock,
  });
  const watch = logWatch(othersWrote);
  const writes = new Writes({
    connection,
    check: checkWritable,
    begin: () => epochs.begin(),
    sync: async () => {
      await file.sync();
      assertInPlace(); // else what was written is in a file that no one will open again
    },
    faultOf,
    onCommitted: () => {
      watch.committed();
      return checkpoint();
    },
  });

  const looking = setInterval(() => {
    try {
      assertInPlace();
    } catch {
      if (isReplaced) clearInterval(looking); // it stays so. Else the look failed, and the next one says more
    }
  }, LOOK_AT_PLACE_MS).unref();

  return {
    ...{ options, file, connection, sets, log, epochs, looks, maintenance, background, watch, writes },
    reader: new Reader(connection, slots),
    logBytes,
    /** Rejects when the file is damaged as far as it was read or checked until now. */
    ping: async (): Promise<void> => {
      await looks.soon(() => meta(connection, 'format'));
      background.assertFit();
      if (damage !== null) throw damage as Error;
    },
    sweep,
    close: async (): Promise<void> => {
      await background.close();
      await writes.idle();
      isOpen = false;
      clearInterval(looking);
      watch.close();
      await maintenance.close();
      try {
        await file.close(isReplaced ? 'replaced' : 'stopped');
      } catch (error) {
        onWarning(`the clean stop of the store was not noted: ${reasonOf(error)}`);
      }
    },
  };

  /**
   * Frees the space of discarded tables for later rows. That of an import that has not come to its end is given back to the
   * disk: its tables lie at the end of the file. `givesBack`: such an import was given up.
   */
  async function sweep(givesBack = false): Promise<void> {
    const ended = () => sets.withoutEnded(options.wallClock());
    const isLeft = (await looks.soon(() => ended().length)) > 0;
    if (isLeft)
      await writes.run(() => {
        for (const set of ended()) sets.put(set);
      }, 'frees');
    const numbers = await looks.soon(() => sets.discarded());
    if (numbers.length === 0) return;
    const freePages = () => looks.soon(() => Number(connection.get('pragma freelist_count')?.freelist_count));
    await writes.alone(async () => {
      check(); // the store may have been closed meanwhile
      const before = await freePages();
      await maintenance.run(numbers.map(dropSql).join(' '));
      if (!(givesBack || isLeft)) return;
      await maintenance.run(`pragma incremental_vacuum(${(await freePages()) - before})`);
      await maintenance.run('pragma wal_checkpoint(truncate)');
    });
    await file.sync();
  }

  function logBytes(): number {
    return statSync(`${file.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  function check(): void {
    if (!isOpen) throw storeUnavailable(new Error('the embedded store is closed'));
    if (isReplaced) throw storeReplaced();
  }

  /** Translates an error of SQLite, and remembers damage. */
  function faultOf(error: unknown): unknown {
    const fault = storeFault(error, directory);
    if (isDamage(error) && damage === null) {
      damage = fault;
      onWarning(`the file of the store is damaged: ${reasonOf(error)}; restore a backup`);
    }
    return fault;
  }

  /** Throws, and refuses everything from then on, when another file is in the place of the store's. */
  function assertInPlace(): void {
    if (!isReplaced && file.isInPlace()) return;
    if (!isReplaced)
      onWarning(
        `${file.path} or its log was replaced or removed while this process has it open: nothing is read or written until it is started again; stop every process before you restore a backup`,
      );
    isReplaced = true;
    throw storeReplaced();
  }

  function checkWritable(frees: boolean): void {
    check();
    assertInPlace();
    if (frees) return;
    const now = performance.now();
    if (now - diskLookedAt < LOOK_AT_DISK_MS) return;
    if (freeBytes(directory) < RESERVE_BYTES) throw diskFull(directory);
    diskLookedAt = now;
  }

  /**
   * Moves what the write-ahead log has into the file, in a thread, when there is much of it. Writers wait meanwhile, so the
   * checkpoint itself waits for no one. Where a reader keeps the log from beginning anew, the next one comes after as many
   * pages again.
   */
  async function checkpoint(): Promise<void> {
    try {
      const pages = file.pagesInLog();
      if (pages < options.checkpointPages) nextCheckpoint = options.checkpointPages;
      if (pages < nextCheckpoint) return;
      nextCheckpoint = pages + options.checkpointPages;
      await maintenance.run(
        `pragma busy_timeout=0; pragma wal_checkpoint(${pages > LONG_LOG_PAGES ? 'restart' : 'passive'}); pragma busy_timeout=2000`,
      );
      const bytes = logBytes();
      if (bytes > LONG_LOG_BYTES && !hasWarned)
        onWarning(
          `the write-ahead log of the store has ${bytes} bytes: another process may read the file and keep it from beginning anew`,
        );
      hasWarned = bytes > LONG_LOG_BYTES;
    } catch (error) {
      onWarning(`the write-ahead log of the store was not moved into the file: ${reasonOf(error)}`);
    }
  }

  function othersWrote(): boolean {
    const before = dataVersion;
    try {
      dataVersion = connection.get('pragma data_version')?.data_version;
      return dataVersion !== before;
    } catch {
      return true; // the look that follows says why
    }
  }
}
