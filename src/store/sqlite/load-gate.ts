import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { notReady } from '../../errors.ts';
import { DatabaseSync } from '../../sqlite.ts';
import type { Load, OnConflict, Refuse } from '../store.ts';
import type { Core } from './core.ts';
import { tablesSql } from './layout.ts';
import { SetLoad, type LoadLock } from './load.ts';
import { isBusy } from './errors.ts';
import { NEW, newIdentity, type SetRecord, type SetShape } from './sets.ts';

/** How often to look whether another process has finished its load, or ended. Milliseconds. */
const LOOK_MS = 200;

export type LoadGate = ReturnType<typeof loadGate>;

/** The loads of a set, by this process and by others. No one else sees or writes its rows meanwhile. */
export function loadGate(core: Core, shape: SetShape) {
  const { sets, writes, looks } = core;
  const { name } = shape;
  let recovering: Promise<boolean> | null = null;

  return { assertWhole, write, load, recover };

  /** In a look: rejects reads while the set is loaded. When the loading process has ended, its remains are removed. */
  function assertWhole(set: SetRecord): void {
    if (!set.loading) return;
    recovering ??= recover()
      .catch(() => false) // the disk may be full: the next read tries again
      .finally(() => (recovering = null));
    throw notReady();
  }

  /** Runs an action in a transaction while no one loads the set. */
  async function write<T>(action: (set: SetRecord) => T): Promise<T> {
    for (;;) {
      const done = await writes.run(() => {
        const set = sets.get(name);
        return set.loading ? null : { result: action(set) };
      });
      if (done) return done.result;
      await untilFree();
    }
  }

  async function load(onConflict: OnConflict, refuse: Refuse, replaces = false): Promise<Load | null> {
    await recover();
    const id = randomUUID();
    const lock = await looks.soon(() => takeLock(pathOf(id)));
    let begun: Begun | null = null;
    try {
      for (;;) {
        begun = await writes.run(() => begin(id, replaces));
        if (begun) return new SetLoad(core, shape, { ...begun, lock, onConflict, refuse });
        if (!replaces) return null;
        await untilFree();
      }
    } finally {
      if (!begun) await lock.release();
    }
  }

  /** Undoes a load whose process has ended. Resolves with whether the set is free now. */
  async function recover(): Promise<boolean> {
    const leftIn = ({ loading } = sets.get(name)) =>
      loading && !isLocked(pathOf(loading.lock)) ? loading : null;
    const left = await looks.soon(leftIn);
    if (left) {
      await writes.run(() => {
        if (leftIn()) sets.empty(sets.get(name));
      });
      await rm(pathOf(left.lock), { force: true });
      void core.sweep().catch(() => undefined); // the next start tries again
    }
    return looks.soon(() => sets.get(name).loading === undefined);
  }

  async function untilFree(): Promise<void> {
    while (!(await recover())) await delay(LOOK_MS);
  }

  /** In a transaction: marks the set, and gives it empty tables without indexes. Null: it is not free, or not empty. */
  function begin(lock: string, replaces: boolean): Begun | null {
    const before = sets.get(name);
    const removed = sets.rows(name);
    if (before.loading || (removed > 0 && !replaces)) return null;
    const number = sets.takeNumber();
    const indexes = before.indexes.map(({ number: own, paths }) => ({ number: own, paths, builtTo: null }));
    // A stream of the rows that are replaced must not go on in those that come.
    const identity = removed > 0 ? newIdentity() : before.identity;
    const set = sets.renumber({ ...before, ...NEW, identity, indexes, loading: { lock } }, number);
    core.connection.exec(tablesSql(number, indexes));
    return { set, removed };
  }

  function pathOf(lock: string): string {
    return `${core.file.path}-load-${lock}`;
  }
}

interface Begun {
  readonly set: SetRecord;
  readonly removed: number;
}

function takeLock(path: string): LoadLock {
  const file = new DatabaseSync(path);
  file.exec('pragma busy_timeout=0; pragma journal_mode=memory; begin exclusive');
  return {
    release: () => {
      file.close();
      return rm(path, { force: true });
    },
  };
}

function isLocked(path: string): boolean {
  let file: InstanceType<typeof DatabaseSync> | null = null;
  try {
    file = new DatabaseSync(path, { readOnly: true });
    file.exec('pragma busy_timeout=0; pragma schema_version');
    return false;
  } catch (error) {
    return isBusy(error); // else the file is missing
  } finally {
    file?.close();
  }
}
