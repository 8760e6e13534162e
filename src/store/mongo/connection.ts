import { MongoClient, MongoServerSelectionError } from 'mongodb';
import type { BulkWriteOptions, ClientSession, Collection, Db, Document } from 'mongodb';
import { storeUnavailable } from '../../errors.ts';
import { withDeadline } from '../deadline.ts';
import { Timestamp } from '../bson.ts';
import type { PointInTime } from '../store.ts';
import { clientOptions, refuseCompression } from './client-options.ts';
import { mayRetry, translate } from './errors.ts';

/**
 * A batch takes milliseconds and the deepest offset a second. A command that takes longer means that the server is in
 * trouble.
 */
export const COMMAND_LIMIT_MS = 20_000;
/** How much longer to wait for an answer than the server may work on it. */
export const GRACE_MS = 2_000;
/** Commands that accept a read concern. */
const READS = ['find', 'count', 'aggregate'];
const DATABASE = 'sluice';
/**
 * Rows stay bytes, and the rest of a reply is decoded. The driver's own option `raw` is never used: it leaves the nested
 * documents of an error as bytes, too. The driver keeps `topologyVersion` of such an error, and its next heartbeat
 * throws from a timer, which ends the process.
 */
const ROWS_AS_BYTES = { fieldsAsRaw: { firstBatch: true, nextBatch: true } } as const;

export interface CommandOptions {
  readonly signal?: AbortSignal;
  /**
   * What a read sees: the rows at a point in time, or (`latest`) at one that the server picks and reports. Absent: the
   * latest version of each row.
   */
  readonly snapshot?: PointInTime | 'latest';
  /** The earliest time of the latest rows, instead of everything seen so far: see Plan. */
  readonly since?: PointInTime | undefined;
  /** False: a member that lacks what this connection has seen answers, too. Without a primary it may lack that for long. */
  readonly causal?: false;
  /** Leaves the rows of the reply as bytes, see RowsReply. */
  readonly rowsAsBytes?: boolean;
  /**
   * Replaces the URI's read preference: `primary` for commands that change something, `primaryPreferred` for those
   * that must see such changes, `secondaryPreferred` for data that the primary does not have.
   */
  readonly readPreference?: 'primary' | 'primaryPreferred' | 'secondaryPreferred';
  /** How long the server may work on the command, in milliseconds. Default: 20 s. */
  readonly limitMs?: number;
  /** Sets no time limit: building an index can take any time. */
  readonly unlimited?: boolean;
}

/**
 * The connection to MongoDB: a client with defaults for a server that must notice a dead database within seconds, and
 * one method to run a command. `db.command` ignores all read preferences and read concerns except those of the call,
 * and the driver does not retry it. This class does both in one place.
 */
export class MongoConnection {
  readonly client: MongoClient;
  /** The causal session of all reads: a later read never sees an earlier state than a previous one did. */
  readonly session: ClientSession;
  /**
   * The session of reads that state their time. In a causal session the server refuses a point in time, and the driver
   * adds its own.
   */
  readonly #timeless: ClientSession;
  readonly #db: Db;
  /** Servers that answered but do not belong to the replica set that the URI names. */
  readonly #otherSets: Map<string, string>;
  readonly #uri: string;
  readonly #found: { servers: number };

  /**
   * Does not connect. Throws MongoParseError or MongoRefusal when the URI cannot be used. With `shared`: the same
   * connection, with another database of that name in place of the URI's.
   */
  constructor(uri: string, shared?: { readonly of: MongoConnection; readonly database: string }) {
    this.#uri = uri;
    if (shared) {
      this.client = shared.of.client;
      this.session = shared.of.session;
      this.#timeless = shared.of.#timeless;
      this.#otherSets = shared.of.#otherSets;
      this.#found = shared.of.#found;
      this.#db = this.client.db(shared.database);
      return;
    }
    refuseCompression(uri);
    this.client = new MongoClient(uri, clientOptions(uri));
    this.#otherSets = new Map();
    const found = (this.#found = { servers: 0 });
    this.client.on('serverDescriptionChanged', ({ previousDescription, newDescription }) => {
      if (previousDescription.type === 'Unknown' && newDescription.type !== 'Unknown') found.servers++;
    });
    this.#seeSets();
    this.session = this.client.startSession({ causalConsistency: true });
    this.#timeless = this.client.startSession({ causalConsistency: false });
    const isNamed = /^mongodb(?:\+srv)?:\/\/[^/?]*\/[^?]/.test(uri);
    this.#db = this.client.db(isNamed ? undefined : DATABASE); // once: it costs as much as a small command
  }

  /** The name of the database. */
  get database(): string {
    return this.#db.databaseName;
  }

  /** How many times the driver has found a server, also one that it had lost. */
  get serversFound(): number {
    return this.#found.servers;
  }

  /** The same connection, for another database. Close only the first one. */
  in(database: string): MongoConnection {
    return new MongoConnection(this.#uri, { of: this, database });
  }

  /** Connects unless already connected. Rejects with `store-unavailable` when no server answers. */
  async connect(): Promise<void> {
    try {
      await this.client.connect();
    } catch (error) {
      throw translate(this.#explained(error));
    }
  }

  /** The driver drops a server of another set silently and later reports only that it found no server in time. */
  #seeSets(): void {
    const { replicaSet } = this.client.options;
    if (!replicaSet) return;
    this.client.on('serverHeartbeatSucceeded', ({ connectionId, reply }) => {
      const { setName } = reply as { readonly setName?: string };
      if (setName === replicaSet) this.#otherSets.delete(connectionId);
      else
        this.#otherSets.set(
          connectionId,
          setName === undefined ? 'not in a replica set' : `in the replica set '${setName}'`,
        );
    });
  }

  #explained(error: unknown): unknown {
    if (!(error instanceof MongoServerSelectionError) || this.#otherSets.size === 0) return error;
    const found = [...this.#otherSets].map(([address, set]) => `${address} is ${set}`).join(', ');
    const { replicaSet } = this.client.options;
    const said = `The MongoDB URI says replicaSet=${replicaSet}, but ${found}. Correct the name in the URI, or omit it.`;
    return storeUnavailable(new Error(said, { cause: error }));
  }

  /**
   * Runs a command that is safe to repeat. Repeats it once when the connection or the member was lost. Rejects with
   * the signal's reason, with `store-unavailable`, or with the server's error when the command itself is at fault.
   */
  async run(command: Document, options: CommandOptions = {}): Promise<Document> {
    try {
      return await this.#runOnce(command, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!mayRetry(error)) throw translate(error);
    }
    try {
      return await this.#runOnce(command, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      throw translate(error);
    }
  }

  /**
   * Runs a command of a cursor once, and leaves its rows as bytes, see RowsReply. All commands of a cursor go to the primary,
   * while there is one, in one session. Rejects with the signal's reason or as the driver does.
   */
  onCursor(command: Document, limitMs: number, signal: AbortSignal | undefined): Promise<Document> {
    catchUp(this.#timeless, this.session);
    const readPreference = this.client.readPreference.mode === 'primary' ? 'primary' : 'primaryPreferred';
    return withDeadline(limitMs, signal, (end) =>
      this.#db.command(command, { ...ROWS_AS_BYTES, session: this.#timeless, readPreference, signal: end }),
    );
  }

  /** Runs a write in a session of its own. The shared session would mix up the numbers of retryable writes. */
  async write<T>(
    work: (items: Collection, options: BulkWriteOptions, db: Db) => Promise<T>,
    collection: string,
  ): Promise<T> {
    const session = this.client.startSession({ causalConsistency: true });
    try {
      const writeConcern = { w: 'majority', journal: true, wtimeoutMS: 60_000 } as const;
      return await work(this.#db.collection(collection), { session, ordered: false, writeConcern }, this.#db);
    } catch (error) {
      throw translate(error);
    } finally {
      // Later reads include what was written, whichever member answers.
      catchUp(this.session, session);
      if (session.operationTime) this.session.advanceOperationTime(session.operationTime);
      await session.endSession();
    }
  }

  async close(): Promise<void> {
    await this.session.endSession();
    await this.#timeless.endSession();
    await this.client.close();
  }

  /** Each command gets a new readConcern object, because the driver writes the causal time into it. */
  #runOnce(command: Document, options: CommandOptions) {
    const { signal, snapshot, since, causal, rowsAsBytes, readPreference, unlimited = false } = options;
    const { limitMs = COMMAND_LIMIT_MS } = options;
    const isTimed = typeof snapshot === 'bigint' || since !== undefined;
    if (isTimed) catchUp(this.#timeless, this.session);
    const reads = READS.some((name) => name in command);
    const complete = {
      ...command,
      ...(reads && { readConcern: readConcernOf(options) }),
      ...(!unlimited && { maxTimeMS: limitMs }),
    };
    return withDeadline(unlimited ? null : limitMs + GRACE_MS, signal, (end) =>
      this.#db.command(complete, {
        ...(rowsAsBytes && ROWS_AS_BYTES),
        session: isTimed || causal === false ? this.#timeless : this.session,
        readPreference: readPreference ?? this.client.readPreference,
        signal: end,
      }),
    );
  }
}

function readConcernOf({ snapshot, since }: CommandOptions): Document {
  if (since !== undefined) return { level: 'majority', afterClusterTime: new Timestamp(since) };
  if (snapshot === undefined) return { level: 'majority' };
  if (snapshot === 'latest') return { level: 'snapshot' };
  return { level: 'snapshot', atClusterTime: new Timestamp(snapshot) };
}

/**
 * A member that has not heard of a time refuses it unless it learns that other members have. A session passes on what
 * it knows.
 */
function catchUp(behind: ClientSession, ahead: ClientSession): void {
  if (ahead.clusterTime) behind.advanceClusterTime(ahead.clusterTime);
}
