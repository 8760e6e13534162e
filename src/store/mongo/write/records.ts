import { AppError, storeUnavailable } from '../../../base/errors.ts';
import { TurnsByKey } from '../../turns/work-turns.ts';
import type { ReadBatch } from '../../batch.ts';
import type { Identity } from '../../bookmark.ts';
import type { Change, RecordDeclaration, Records } from '../../records.ts';
import type { Slots } from '../../turns/slots.ts';
import type { Collection, Plan, Size } from '../../store.ts';
import { BatchBuilder } from '../read/batch-builder.ts';
import { named, ON_PRIMARY } from '../commands.ts';
import { NotMadeYet, type Layout, type LayoutOptions } from '../collection/create-collection.ts';
import { CODES, serverCodeOf } from '../errors.ts';
import { faultOf } from '../faults.ts';
import type { Layouts } from '../collection/layouts.ts';
import { openCollection, type CollectionParts, type OpenCollection } from '../collection.ts';
import { changed, refuseErrors, writeRaw } from './raw-write.ts';
import { rowsOf } from '../reply.ts';

/** Each miss is a change of the record by another process. This number in a row does not happen by chance. */
const MOST_TRIES = 50;
/** A missing write permission may be granted tomorrow, but not within a second. */
const READ_ONLY_RETRY_SECONDS = 60;

/** See Store.records. They are read as the rows of any collection are. */
export function openRecords(
  { name, validator, indexes }: RecordDeclaration,
  ground: CollectionParts,
  options: Omit<LayoutOptions, 'indexes'>,
): OpenCollection<Records> {
  let changing = 0;
  const asked: LayoutOptions = {
    ...options,
    indexes,
    records: name,
    adopts: false,
    create: { clustered: true, validator },
    isToCome: () => changing === 0,
  };
  const { rows: found, layouts } = openCollection(ground, asked, { indexes });
  const turns = new TurnsByKey();
  const making = async <T>(work: (layout: Layout) => Promise<T>): Promise<T> => {
    changing++;
    try {
      return await work(await madeLayout(layouts));
    } finally {
      changing--;
    }
  };
  const rows: Records = {
    ...emptyUntilMade(found, ground.slots),
    change: (id, change) =>
      making(({ identity }) => turns.take(id, () => changeRecord(layouts, identity, id, change))),
    addIndex: (...call) => making(() => found.addIndex(...call)),
  };
  return { rows, layouts };
}

/** The rows of a collection. Reads that reject with NotMadeYet find nothing instead. */
function emptyUntilMade(rows: Collection, slots: Slots): Collection {
  const or = <T>(reading: Promise<T>, nothing: () => T): Promise<T> =>
    reading.catch((error: unknown) => {
      if (error instanceof NotMadeYet) return nothing();
      throw error;
    });
  const nothing = (plan: Plan, size: Size): ReadBatch => ({
    ...new BatchBuilder(plan, size).toBatch(slots, false),
    confirm: () => Promise.resolve(), // it holds every row that there was, although there is a collection now
  });
  return {
    ...rows,
    read: (plan, from, size, signal) => or(rows.read(plan, from, size, signal), () => nothing(plan, size)),
    describe: (...call) =>
      or(rows.describe(...call), () => ({ identity: undefined, indexes: [], now: null })),
    count: (...call) => or(rows.count(...call), () => ({ rows: 0, is: 'exact' })),
    split: (...call) => or(rows.split(...call), () => []),
    nextValue: (...call) => or(rows.nextValue(...call), () => null),
  };
}

/** The layout, by a look that may make the collection. One that a read began before makes nothing. */
async function madeLayout(layouts: Layouts): Promise<Layout> {
  try {
    return await layouts.layout();
  } catch (error) {
    if (!(error instanceof NotMadeYet)) throw error;
    return layouts.layout();
  }
}

/**
 * A change is a compare-and-set: it reads the document from the primary, decides, and writes on the condition that the
 * whole document is still the one it read. Otherwise it tries again.
 *
 * A read after a miss waits until a majority has the write that won (causal session). It therefore sees that write and
 * never spins. Changes of one record from this process wait for one another, so only other processes can cause a miss.
 */
async function changeRecord(layouts: Layouts, identity: Identity | undefined, id: string, change: Change) {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const before = await findRecord(layouts, identity, id);
    const after = change(before);
    if (after === 'keep') return { before, after: before };
    if (await swap(layouts, before, after)) return { before, after };
  }
  throw storeUnavailable(new Error(`other processes changed the record at each of ${MOST_TRIES} tries`));
}

/** Names the collection by identity: else a missing one would have nothing, and the write would create it again. */
async function findRecord(layouts: Layouts, identity: Identity | undefined, id: string) {
  const { collection, connection } = layouts;
  const find = { find: collection, filter: { _id: { $eq: id } }, limit: 1, singleBatch: true };
  try {
    const reply = await connection.run(named(find, identity), { rowsAsBytes: true, ...ON_PRIMARY });
    return rowsOf(reply).rows[0] ?? null;
  } catch (error) {
    throw faultOf(error, layouts, {});
  }
}

/** Writes `after` if the record is still `before`. Returns whether it was. */
async function swap(
  { collection, connection }: Layouts,
  before: Uint8Array | null,
  after: Uint8Array | null,
): Promise<boolean> {
  if (!before && !after) return true;
  const statement = before ? changed(before, after) : (after ?? new Uint8Array());
  const command = !before ? 'insert' : after ? 'update' : 'delete';
  try {
    const { rows, errors } = await writeRaw(connection, collection, command, [statement]);
    if (!before && errors[0]?.code === CODES.duplicateKey) return false;
    refuseErrors(errors);
    return rows === 1;
  } catch (error) {
    if (serverCodeOf(error) !== CODES.unauthorized) throw error;
    throw new AppError(
      'store-unavailable',
      `The database permits this server to read ${collection}, but not to change them.`,
      { cause: error, retrySeconds: READ_ONLY_RETRY_SECONDS },
    );
  }
}
