import { MongoClient, MongoServerSelectionError } from 'mongodb';
import type { BulkWriteOptions, ClientSession, Collection, Db, Document, MongoClientOptions } from 'mongodb';
import { storeUnavailable } from '../../errors.ts';
import { bounded } from '../deadline.ts';
import { Timestamp } from '../bson.ts';
import type { PointInTime } from '../store.ts';
import { MongoRefusal, mayRetry, translate } from './errors.ts';

/** A batch takes milliseconds, the deepest offset a second; what takes longer is a server in trouble. */
export const COMMAND_LIMIT_MS = 20_000;
/** How much longer we wait for an answer than the server was allowed to work. */
export const GRACE_MS = 2_000;
/** Commands that may say how well confirmed what they read must be. */
const READS = ['find', 'count', 'aggregate'];
const DATABASE = 'sluice';

export interface CommandOptions {
  readonly signal?: AbortSignal;
  /** What a read sees: the rows of a point in time, or of one that the server picks and names; else the latest of each. */
  readonly snapshot?: PointInTime | 'latest';
  /** A time that the latest rows may not be before, instead of all that was seen: see Plan. */
  readonly since?: PointInTime | undefined;
  /** The reply's nested documents stay bytes. */
  readonly raw?: boolean;
  /** Instead of the URI's: `primary` for what changes something, `primaryPreferred` for what must see it, `secondaryPreferred` for what the primary has not. */
  readonly readPreference?: 'primary' | 'primaryPreferred' | 'secondaryPreferred';
  /** How long the server may work on it, in ms, instead of 20 s. */
  readonly limitMs?: number;
  /** No limit: building an index takes as long as it takes. */
  readonly unlimited?: boolean;
}

/**
 * The connection to MongoDB: a client whose defaults fit a server that must notice a dead database in seconds, and one
 * way to run a command. `db.command` heeds no read preference and no read concern but those given with the call,
 * and the driver does not retry it; so all of that is done here, once.
 */
export class MongoConnection {
  readonly client: MongoClient;
  /** The causal session of all reads: what one of them has seen, no later one goes back behind. */
  readonly session: ClientSession;
  /** The session of reads that say their time: in a causal one the server refuses a point in time, and the driver puts its own in. */
  readonly #timeless: ClientSession;
  readonly #db: Db;
  /** Servers that answered and are not of the replica set that the URI names. */
  readonly #otherSets = new Map<string, string>();

  /** Does not connect. MongoParseError or MongoRefusal when the URI cannot be used. */
  constructor(uri: string) {
    refuseCompression(uri);
    this.client = new MongoClient(uri, clientOptions(uri));
    this.#seeSets();
    this.session = this.client.startSession({ causalConsistency: true });
    this.#timeless = this.client.startSession({ causalConsistency: false });
    const isNamed = /^mongodb(?:\+srv)?:\/\/[^/?]*\/[^?]/.test(uri);
    this.#db = this.client.db(isNamed ? undefined : DATABASE); // made once: it costs as much as a small command
  }

  /** The name of the database. */
  get database(): string {
    return this.#db.databaseName;
  }

  /** Connects, unless it is connected. Rejects with `store-unavailable` when no server answers. */
  async connect(): Promise<void> {
    try {
      await this.client.connect();
    } catch (error) {
      throw translate(this.#explained(error));
    }
  }

  /** The driver drops a server of another set without a word, and then says only that it found none in time. */
  #seeSets(): void {
    const { replicaSet } = this.client.options;
    if (!replicaSet) return;
    this.client.on('serverHeartbeatSucceeded', ({ connectionId, reply }) => {
      const { setName } = reply as { readonly setName?: string };
      if (setName === replicaSet) this.#otherSets.delete(connectionId);
      else this.#otherSets.set(connectionId, setName === undefined ? 'of no set' : `of the set '${setName}'`);
    });
  }

  #explained(error: unknown): unknown {
    if (!(error instanceof MongoServerSelectionError) || this.#otherSets.size === 0) return error;
    const found = [...this.#otherSets].map(([address, set]) => `${address} is ${set}`).join(', ');
    const { replicaSet } = this.client.options;
    const said = `The MongoDB URI says replicaSet=${replicaSet}, but ${found}. Correct the name in the URI, or leave it out.`;
    return storeUnavailable(new Error(said, { cause: error }));
  }

  /**
   * Runs a command that can be repeated without harm, once more when the connection or the member was lost. Rejects
   * with the signal's reason, with `store-unavailable`, or with the server's error when the command itself is at fault.
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

  /** Writes with a session of their own (the shared one would mix up the numbers of retryable writes). */
  async write<T>(
    work: (items: Collection, options: BulkWriteOptions) => Promise<T>,
    collection: string,
  ): Promise<T> {
    const session = this.client.startSession({ causalConsistency: true });
    try {
      return await work(this.#db.collection(collection), {
        session,
        ordered: false,
        writeConcern: { w: 'majority', journal: true, wtimeoutMS: 60_000 },
      });
    } catch (error) {
      throw translate(error);
    } finally {
      // What is read here from now on includes what was written, whichever member answers.
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

  /** The command gets a readConcern object of its own each time: the driver writes the causal time into it. */
  #runOnce(command: Document, options: CommandOptions) {
    const { signal, snapshot, since, raw = false, readPreference, unlimited = false } = options;
    const { limitMs = COMMAND_LIMIT_MS } = options;
    const isTimed = typeof snapshot === 'bigint' || since !== undefined;
    if (isTimed) catchUp(this.#timeless, this.session);
    const reads = READS.some((name) => name in command);
    const complete = {
      ...command,
      ...(reads && { readConcern: readConcernOf(options) }),
      ...(!unlimited && { maxTimeMS: limitMs }),
    };
    return bounded(unlimited ? null : limitMs + GRACE_MS, signal, (end) =>
      this.#db.command(complete, {
        raw,
        session: isTimed ? this.#timeless : this.session,
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

/** A member that has not heard of a time refuses it, unless it is told that the others have: a session tells what it knows. */
function catchUp(behind: ClientSession, ahead: ClientSession): void {
  if (ahead.clusterTime) behind.advanceClusterTime(ahead.clusterTime);
}

function clientOptions(uri: string): MongoClientOptions {
  return {
    appName: 'sluice',
    // The driver's 30 s would be the time a request waits while the database is away, and a hung member is not left.
    ...(!names(uri, 'serverSelectionTimeoutMS') && { serverSelectionTimeoutMS: 3_000 }),
    ...(!names(uri, 'connectTimeoutMS') && { connectTimeoutMS: 2_000 }),
    // A member that hangs is noticed when it is silent for both times together, 3 s; by default that is 12 s.
    ...(!names(uri, 'heartbeatFrequencyMS') && { heartbeatFrequencyMS: 1_000 }),
    // A dead primary costs 0.1 to 3 s so, an election with `primary` 10 s. Majority reads roll nothing back anywhere.
    ...(!names(uri, 'readPreference') && { readPreference: 'primaryPreferred' }),
  };
}

function refuseCompression(uri: string): void {
  if (!names(uri, 'compressors') || /[?&]compressors=none(&|$)/i.test(uri)) return;
  throw new MongoRefusal(
    'The MongoDB URI asks for wire compression (compressors=...), which makes scans about 10 times slower. Take it out.',
  );
}

/** Whether the URI sets an option (their names are case-insensitive). */
function names(uri: string, option: string): boolean {
  return new RegExp(`[?&]${option}=`, 'i').test(uri);
}
