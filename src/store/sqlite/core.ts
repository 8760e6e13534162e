import { reasonOf } from '../../base/error-reason.ts';
import type { Slots } from '../turns/slots.ts';
import { BackgroundCheck } from './file/background-check.ts';
import { Checkpoints } from './file/checkpoints.ts';
import type { Connection } from './file/connection.ts';
import { Epochs } from './file/epochs.ts';
import type { StoreFile } from './file/file.ts';
import { dropSql, meta } from './file/layout.ts';
import { ChangeLog, type LogOptions } from './file/log.ts';
import { Looks } from './file/looks.ts';
import { Maintenance } from './file/maintenance.ts';
import { Reader } from './read/read.ts';
import { Collections } from './file/collections.ts';
import { LogWatch } from './changes/watch.ts';
import { Writes } from './write/writes.ts';

interface CoreOptions extends LogOptions {
  readonly file: StoreFile;
  readonly directory: string;
  readonly slots: Slots;
  /** How many pages the write-ahead log may have before a checkpoint. */
  readonly checkpointPages: number;
  /** Rows per transaction. Absent: as many as block the event loop for a few milliseconds. */
  readonly transactionRows?: number | undefined;
  /** How long a snapshot may be read. Milliseconds. */
  readonly snapshotMs: number;
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
}

/** What all collections of an open file share. */
export class Core {
  readonly options: CoreOptions;
  readonly file: StoreFile;
  readonly connection: Connection;
  readonly collections: Collections;
  readonly log: ChangeLog;
  readonly epochs: Epochs;
  readonly looks: Looks;
  readonly reader: Reader;
  readonly maintenance: Maintenance;
  readonly background: BackgroundCheck;
  readonly watch: LogWatch;
  readonly checkpoints: Checkpoints;
  readonly writes: Writes;
  /** What ends each open snapshot. */
  readonly snapshots = new Set<() => void>();

  constructor(options: CoreOptions) {
    const { file, slots } = options;
    const { connection } = file;
    this.options = options;
    this.file = file;
    this.connection = connection;
    this.collections = new Collections(connection);
    this.log = new ChangeLog(connection, this.collections, options);
    this.epochs = new Epochs(connection, this.collections, this.log, options);
    this.looks = new Looks(connection, file);
    this.reader = new Reader(connection, slots);
    this.maintenance = new Maintenance(file.path);
    this.background = new BackgroundCheck(this);
    this.watch = new LogWatch(() => connection.hasNews());
    this.checkpoints = new Checkpoints(options, this.maintenance);
    const onCommitted = () => {
      this.watch.committed();
      return this.checkpoints.make();
    };
    this.writes = new Writes({ connection, file, epochs: this.epochs, onCommitted });
  }

  /** Rejects when the file is damaged as far as it was read or checked until now. */
  async ping(): Promise<void> {
    await this.looks.soon(() => meta(this.connection, 'format'));
    this.background.assertFit();
    this.file.assertWhole();
  }

  /**
   * Frees the space of discarded tables for later rows. That of an import that has not come to its end is given back to the
   * disk: its tables lie at the end of the file. `givesBack`: such an import was given up.
   */
  async sweep(givesBack = false): Promise<void> {
    const { connection, collections, looks, writes, maintenance } = this;
    const ended = () => collections.withoutEnded(this.options.wallClock());
    const isLeft = (await looks.soon(() => ended().length)) > 0;
    if (isLeft)
      await writes.run(() => {
        for (const collection of ended()) collections.put(collection);
      }, 'small');
    const numbers = await looks.soon(() => collections.discarded());
    if (numbers.length === 0) return;
    const freePages = () => looks.soon(() => Number(connection.get('pragma freelist_count')?.freelist_count));
    await writes.alone(async () => {
      this.file.check(); // the store may have been closed meanwhile
      const before = await freePages();
      await maintenance.run(numbers.map(dropSql).join(' '));
      if (!(givesBack || isLeft)) return;
      await maintenance.run(`pragma incremental_vacuum(${(await freePages()) - before})`);
      await maintenance.run('pragma wal_checkpoint(truncate)');
    });
    await this.file.sync();
  }

  async close(): Promise<void> {
    await this.background.close();
    await this.writes.idle();
    this.file.refuse();
    for (const release of this.snapshots) release();
    this.watch.close();
    await this.maintenance.close();
    try {
      await this.file.close('stopped');
    } catch (error) {
      this.options.onWarning(`the clean stop of the store was not noted: ${reasonOf(error)}`);
    }
  }
}
