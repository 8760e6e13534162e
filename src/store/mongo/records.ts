import { MongoServerError } from 'mongodb';
import { AppError, storeUnavailable } from '../../errors.ts';
import { TurnsByKey } from '../../turns.ts';
import type { Identity } from '../bookmark.ts';
import type { Change, Changed, RecordDeclaration, Records } from '../records.ts';
import { named, ON_PRIMARY } from './commands.ts';
import { NotMadeYet, type Layout, type LayoutOptions } from './create-collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, serverCodeOf, translate } from './errors.ts';
import { faultOf } from './faults.ts';
import type { Layouts } from './layouts.ts';
import { openCollection, type Ground, type OpenCollection } from './open-collection.ts';
import { changed, writeRaw } from './raw-write.ts';
import { ofRecords } from './record-collection.ts';
import { emptyUntilMade } from './records-to-come.ts';
import { rowsOf } from './reply.ts';

/**
 * Each miss means that another process changed the same record in between. This number of misses in a row does not happen
 * by chance.
 */
const MOST_TRIES = 50;
/** A missing write permission may be granted tomorrow, but not within a second. */
const READ_ONLY_RETRY_SECONDS = 60;

/** See Store.records. They are read as the rows of any collection are. */
export function openRecords(
  declaration: RecordDeclaration,
  ground: Ground,
  options: Omit<LayoutOptions, 'indexes'>,
): OpenCollection<Records> {
  let changing = 0;
  const mayMake = () => declaration.isMadeAtOnce || changing > 0;
  const { connection, slots } = ground;
  const { rows: found, layouts } = openCollection(
    ground,
    { ...options, ...ofRecords(declaration, mayMake) },
    declaration,
  );
  const changes = new RecordChanges(connection, layouts);
  const making = async <T>(work: () => Promise<T>): Promise<T> => {
    changing++;
    return work().finally(() => changing--);
  };
  const rows: Records = {
    ...emptyUntilMade(found, slots),
    change: (...call) => making(() => changes.change(...call)),
    addIndex: (...call) =>
      making(async () => {
        await changes.layout();
        return found.addIndex(...call);
      }),
  };
  return { rows, layouts };
}

/**
 * A change is a compare-and-set: it reads the document from the primary, decides, and writes on the condition that the
 * whole document is still the one it read. Otherwise it tries again.
 *
 * A read after a miss waits until a majority has the write that won (causal session). It therefore sees that write and
 * never spins. Changes of one record from this process wait for one another, so only other processes can cause a miss.
 */
class RecordChanges {
  readonly #connection: MongoConnection;
  readonly #layouts: Layouts;
  readonly #turns = new TurnsByKey();

  constructor(connection: MongoConnection, layouts: Layouts) {
    this.#connection = connection;
    this.#layouts = layouts;
  }

  async change(id: string, change: Change): Promise<Changed> {
    const { identity } = await this.layout();
    return this.#turns.take(id, () => this.#change(id, change, identity));
  }

  /** A look that a read began before makes nothing. */
  async layout(): Promise<Layout> {
    try {
      return await this.#layouts.layout();
    } catch (error) {
      if (!(error instanceof NotMadeYet)) throw error;
      return this.#layouts.layout();
    }
  }

  async #change(id: string, change: Change, identity: Identity | undefined): Promise<Changed> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const before = await this.#find(id, identity);
      const after = change(before);
      if (after === 'keep') return { before, after: before };
      if (await this.#swap(before, after)) return { before, after };
    }
    throw storeUnavailable(new Error(`other processes changed the record at each of ${MOST_TRIES} tries`));
  }

  /**
   * Names the collection by identity, so that the read fails when the collection is missing. Otherwise it would find
   * nothing, and the write would create the collection again.
   */
  async #find(id: string, identity: Identity | undefined): Promise<Uint8Array | null> {
    const { collection } = this.#layouts;
    const find = { find: collection, filter: { _id: { $eq: id } }, limit: 1, singleBatch: true };
    try {
      const reply = await this.#connection.run(named(find, identity), { rowsAsBytes: true, ...ON_PRIMARY });
      return rowsOf(reply).rows[0] ?? null;
    } catch (error) {
      throw faultOf(translate(error), this.#layouts, {});
    }
  }

  /** Writes `after` if the record is still `before`. Returns whether it was. */
  async #swap(before: Uint8Array | null, after: Uint8Array | null): Promise<boolean> {
    if (!before && !after) return true;
    const statement = before ? changed(before, after) : (after ?? new Uint8Array());
    const command = !before ? 'insert' : after ? 'update' : 'delete';
    const { collection } = this.#layouts;
    try {
      const { rows, errors } = await writeRaw(this.#connection, collection, command, [statement]);
      const [error] = errors;
      if (!error) return rows === 1;
      if (!before && error.code === CODES.duplicateKey) return false;
      throw new MongoServerError({ ...error });
    } catch (error) {
      throw explained(error, collection);
    }
  }
}

function explained(error: unknown, collection: string): unknown {
  if (serverCodeOf(error) !== CODES.unauthorized) return error;
  return new AppError(
    'store-unavailable',
    `The database permits this server to read ${collection}, but not to change them.`,
    { cause: error, retrySeconds: READ_ONLY_RETRY_SECONDS },
  );
}
