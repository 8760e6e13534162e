import type { Collection } from '../store.ts';
import type { Core } from './core.ts';
import { setFeed } from './feed.ts';
import { loadGate } from './load-gate.ts';
import { setCounts } from './set-counts.ts';
import { setIndexes } from './set-indexes.ts';
import { setReads } from './set-reads.ts';
import { setWrites } from './set-writes.ts';
import { NEW, type SetShape } from './sets.ts';

export type OpenSet = Awaited<ReturnType<typeof openSet>>;

/** Opens a set of rows. Makes it and the indexes that are missing, and undoes a load whose process has ended. */
export async function openSet(core: Core, shape: SetShape) {
  const { looks, writes, sets } = core;
  const { name, label } = shape;
  const gate = loadGate(core, shape);
  const indexes = setIndexes(core, shape, gate);
  const reads = setReads(core, shape, gate, indexes);
  const { read, describe } = reads;
  const rows: Collection = {
    ...{ read, describe, ...setCounts(core, reads) },
    ...(shape.hasChanges && { changes: setFeed(core, shape, reads) }),
  };
  const isMissing = await looks.soon(() => sets.find(name) === null);
  if (isMissing) {
    const records = shape.indexes.map((paths, n) => ({ number: n + 1, paths, builtTo: null }));
    await writes.run(() => sets.find(name) ?? sets.create({ ...NEW, name, label, indexes: records }));
  }
  await gate.recover();
  await indexes.declare(shape.indexes);
  await looks.soon(() => indexes.buildLater(sets.get(name)));
  return { rows, indexes, load: gate.load, writes: setWrites(core, shape, gate) };
}
