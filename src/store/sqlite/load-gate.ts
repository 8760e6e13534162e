import { setTimeout as delay } from 'node:timers/promises';
import { notReady } from '../../errors.ts';
import type { Load, OnConflict, Refuse } from '../store.ts';
import { isLive, newMark } from './load-mark.ts';
import { emptySet, SetLoad } from './load.ts';
import { tablesSql } from './layout.ts';
import type { SetParts } from './set-parts.ts';
import { NEW, newIdentity, type SetRecord } from './sets.ts';

/** How often to look whether another process has finished its load, or ended. Milliseconds. */
const LOOK_MS = 200;

/** The loads of a set, by this process and by others. No one else sees or writes its rows meanwhile. */
export class LoadGate {
  readonly #options: SetParts;
  #recovering: Promise<boolean> | null = null;

  constructor(options: SetParts) {
    this.#options = options;
  }

  /**
   * In a look: rejects reads while somebody is loading the set. When the loading process has ended, what it left is removed
   * meanwhile.
   */
  assertWhole(set: SetRecord): void {
    if (!set.loading) return;
    if (!this.#isLive(set))
      this.#recovering ??= this.recover()
        .catch(() => false) // the disk may be full: the next read tries again
        .finally(() => (this.#recovering = null));
    throw notReady();
  }

  /** Runs an action in a transaction while no one loads the set. */
  async write<T>(action: (set: SetRecord) => T): Promise<T> {
    const { sets, writes, name } = this.#options;
    for (;;) {
      const done = await writes.run(() => {
        const set = sets.get(name);
        return set.loading ? null : { result: action(set) };
      });
      if (done) return done.result;
      await this.untilFree();
    }
  }

  /** See Collection.load. */
  async load(onConflict: OnConflict, refuse: Refuse, replaces = false): Promise<Load | null> {
    await this.recover();
    for (;;) {
      const begun = await this.#options.writes.run(() => this.#begin(replaces));
      if (begun) return new SetLoad(this.#options, { ...begun, onConflict, refuse });
      if (!replaces) return null;
      await this.untilFree();
    }
  }

  /** Undoes a load whose process has ended. Resolves with whether the set is free now. */
  async recover(): Promise<boolean> {
    const { sets, writes, name, looks, sweep } = this.#options;
    const isLeft = () => sets.get(name).loading !== undefined && !this.#isLive(sets.get(name));
    if (await looks.soon(isLeft)) {
      await writes.run(() => isLeft() && emptySet(this.#options, sets.get(name)));
      void sweep().catch(() => undefined); // the next start tries again
    }
    return looks.soon(() => sets.get(name).loading === undefined);
  }

  /** Resolves when no one is loading the set. */
  async untilFree(): Promise<void> {
    while (!(await this.recover())) await delay(LOOK_MS);
  }

  /** In a transaction: marks the set, and gives it empty tables without indexes. Null: it is not free, or not empty. */
  #begin(replaces: boolean): { readonly set: SetRecord; readonly removed: number } | null {
    const { sets, connection, name } = this.#options;
    const before = sets.get(name);
    const removed = sets.rows(name);
    if (before.loading || (removed > 0 && !replaces)) return null;
    const number = sets.takeNumber();
    const indexes = before.indexes.map(({ number: own, paths }) => ({ number: own, paths, builtTo: null }));
    // A stream of the rows that are replaced must not go on in those that come.
    const identity = removed > 0 ? newIdentity() : before.identity;
    const set = sets.renumber({ ...before, ...NEW, identity, indexes, loading: newMark() }, number);
    connection.exec(tablesSql(number, indexes));
    connection.run('update sets set alive = ? where name = ?', Date.now(), name);
    return { set, removed };
  }

  #isLive({ loading, name }: SetRecord): boolean {
    const alive = this.#options.connection.get('select alive from sets where name = ?', name)?.alive;
    return loading !== undefined && isLive(loading, Number(alive), Date.now());
  }
}
