import { MongoClient, MongoServerSelectionError } from 'mongodb';
import type { ClientSession, Db, Document, MongoClientOptions } from 'mongodb';
import { storeUnavailable } from '../../base/errors.ts';
import { withDeadline } from '../turns/deadline.ts';
import { Timestamp } from '../values/bson.ts';
import type { PointInTime } from '../store.ts';
import { MongoRefusal, mayRetry, translate } from './errors.ts';

/**
 * A batch takes milliseconds and the deepest offset a second: when a command takes longer, the server is in trouble.
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
  /** A read sees a point in time, or (`latest`) one that the server picks and reports. Absent: the latest rows. */
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
  /** How long the server may work on the command, in milliseconds. Null: any time. Default: 20 s. */
  readonly limitMs?: number | null;
}

/** What the connections to all databases of a deployment share. */
interface Deployment {
  readonly client: MongoClient;
  readonly session: ClientSession;
  readonly timeless: ClientSession;
  /** Of the first connection. Absent: the one that the URI names. */
  readonly database: string | undefined;
  serversFound: number;
}

/**
 * A client that notices a dead database within seconds, and one method to run a command: `db.command` ignores read
 * preferences and read concerns except those of the call, and the driver does not retry it.
 */
export class MongoConnection {
  readonly client: MongoClient;
  /** The causal session of all reads: a later read never sees an earlier state than a previous one did. */
  readonly session: ClientSession;
  /** The session of reads that state their time: in a causal one the server refuses it, and the driver adds its own. */
  readonly #timeless: ClientSession;
  readonly #db: Db;
  readonly #deployment: Deployment;

  /** Does not connect. Throws MongoParseError or MongoRefusal when the URI cannot be used. */
  constructor(to: string | Deployment, database?: string) {
    const deployment = (this.#deployment = typeof to === 'string' ? deploymentOf(to) : to);
    this.client = deployment.client;
    this.session = deployment.session;
    this.#timeless = deployment.timeless;
    this.#db = this.client.db(database ?? deployment.database); // once: it costs as much as a small command
  }

  get database(): string {
    return this.#db.databaseName;
  }

  /** How many times the driver has found a server, also one that it had lost. */
  get serversFound(): number {
    return this.#deployment.serversFound;
  }

  /** The same connection, for another database. Close only the first one. */
  in(database: string): MongoConnection {
    return new MongoConnection(this.#deployment, database);
  }

  /** Connects unless already connected. Rejects with `store-unavailable` when no server answers. */
  async connect(): Promise<void> {
    try {
      await this.client.connect();
    } catch (error) {
      throw translate(this.#explained(error));
    }
  }

  /** The driver drops a server of another set silently, and then reports only that it found no server in time. */
  #explained(error: unknown): unknown {
    const { replicaSet } = this.client.options;
    const isDropped = error instanceof MongoServerSelectionError && error.reason?.servers.size === 0;
    if (!replicaSet || !isDropped) return error;
    const said = `No server of the MongoDB URI is in the replica set '${replicaSet}'. Correct replicaSet in the URI, or omit it.`;
    return storeUnavailable(new Error(said, { cause: error }));
  }

  /**
   * Runs a command that is safe to repeat. Repeats it once when the connection or the member was lost. Rejects with
   * the signal's reason, with `store-unavailable`, or with the server's error when the command itself is at fault.
   */
  async run(command: Document, options: CommandOptions = {}): Promise<Document> {
    try {
      return await this.#runOnce(command, options).catch((error: unknown) => {
        options.signal?.throwIfAborted();
        if (!mayRetry(error)) throw error;
        return this.#runOnce(command, options);
      });
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
  async write<T>(work: (db: Db, session: ClientSession) => Promise<T>): Promise<T> {
    const session = this.client.startSession({ causalConsistency: true });
    try {
      return await work(this.#db, session);
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
    const { signal, snapshot, since, causal, rowsAsBytes, readPreference } = options;
    const { limitMs = COMMAND_LIMIT_MS } = options;
    const isTimed = typeof snapshot === 'bigint' || since !== undefined;
    if (isTimed) catchUp(this.#timeless, this.session);
    const reads = READS.some((name) => name in command);
    const complete = {
      ...command,
      ...(reads && { readConcern: readConcernOf(options) }),
      ...(limitMs !== null && { maxTimeMS: limitMs }),
    };
    return withDeadline(limitMs === null ? null : limitMs + GRACE_MS, signal, (end) =>
      this.#db.command(complete, {
        ...(rowsAsBytes && ROWS_AS_BYTES),
        session: isTimed || causal === false ? this.#timeless : this.session,
        readPreference: readPreference ?? this.client.readPreference,
        signal: end,
      }),
    );
  }
}

function deploymentOf(uri: string): Deployment {
  refuseCompression(uri);
  const client = new MongoClient(uri, clientOptions(uri));
  const deployment = {
    client,
    serversFound: 0,
    session: client.startSession({ causalConsistency: true }),
    timeless: client.startSession({ causalConsistency: false }),
    database: /^mongodb(?:\+srv)?:\/\/[^/?]*\/[^?]/.test(uri) ? undefined : DATABASE,
  };
  client.on('serverDescriptionChanged', ({ previousDescription, newDescription }) => {
    if (previousDescription.type === 'Unknown' && newDescription.type !== 'Unknown')
      deployment.serversFound++;
  });
  return deployment;
}

function readConcernOf({ snapshot, since }: CommandOptions): Document {
  if (since !== undefined) return { level: 'majority', afterClusterTime: new Timestamp(since) };
  if (snapshot === undefined) return { level: 'majority' };
  if (snapshot === 'latest') return { level: 'snapshot' };
  return { level: 'snapshot', atClusterTime: new Timestamp(snapshot) };
}

/** A member refuses a time that it has not heard of, unless a session tells it that other members have. */
function catchUp(behind: ClientSession, ahead: ClientSession): void {
  if (ahead.clusterTime) behind.advanceClusterTime(ahead.clusterTime);
}

/** The defaults of a server that must notice a dead database within seconds. What the URI sets is kept. */
function clientOptions(uri: string): MongoClientOptions {
  return {
    appName: 'sluice',
    // With the driver's 30 s, a request would wait that long while the database is unavailable, and the driver would
    // not leave a member that hangs.
    ...(!names(uri, 'serverSelectionTimeoutMS') && { serverSelectionTimeoutMS: 3_000 }),
    ...(!names(uri, 'connectTimeoutMS') && { connectTimeoutMS: 2_000 }),
    // A member that hangs is noticed once it is silent for both times together: 3 s, instead of 12 s by default.
    ...(!names(uri, 'heartbeatFrequencyMS') && { heartbeatFrequencyMS: 1_000 }),
    // With `primaryPreferred` a dead primary costs 0.1 to 3 s, with `primary` an election of 10 s. Majority reads are
    // never rolled back on any member.
    ...(!names(uri, 'readPreference') && { readPreference: 'primaryPreferred' }),
  };
}

/** Throws MongoRefusal when the URI turns on compression. */
function refuseCompression(uri: string): void {
  if (!names(uri, 'compressors') || /[?&]compressors=none(&|$)/i.test(uri)) return;
  throw new MongoRefusal(
    'The MongoDB URI turns on wire compression (compressors=...), which makes scans about 10 times slower. Remove this option.',
  );
}

/** Whether the URI sets an option. Option names are case-insensitive. */
function names(uri: string, option: string): boolean {
  return new RegExp(`[?&]${option}=`, 'i').test(uri);
}
