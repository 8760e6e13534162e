import type { ClientSession, MongoClient } from 'mongodb';
import { Long } from '../../values/bson.ts';
import { AppError } from '../../../base/errors.ts';
import { withDeadline } from '../../turns/deadline.ts';
import type { Slots } from '../../turns/slots.ts';
import { readAnswer } from './answer.ts';
import { CommandTail, elementsOf } from './command.ts';
import { openConnection, type Connection, type OpenOptions } from './connection.ts';
import type { FindWay, Reply, When } from './find-way.ts';
import { Members } from './members.ts';
import { LaneBroken } from './message.ts';
import { Pool } from './pool.ts';
import { Scram } from './scram.ts';

export type { FindWay, Reply, When } from './find-way.ts';
export { whyNoLane } from './refusal.ts';

/** How long a chain waits for one member while there are others to ask. A batch takes milliseconds. */
const MEMBER_TIMEOUT_MS = 2_000;
/** How long that member is then not asked: it hangs, or lacks the rows that the chain began with. */
const REST_MS = 5_000;

/** Connections to one member when the URI sets no limit. */
const MOST_CONNECTIONS = 100;

/** What errors of a find mean. The driver's way judges them by the same functions. */
interface FindErrors {
  /** Whether this member lacks a point in time that another one may have. */
  readonly isForgotten: (error: unknown) => boolean;
  /** Whether another member, or the same one a little later, can answer. */
  readonly mayRetry: (error: unknown) => boolean;
  /** The error for the callers of the store. */
  readonly translate: (error: unknown) => unknown;
}

interface LaneParts {
  readonly members: Members;
  readonly session: ClientSession;
  /** Makes the fields that every find in a database ends with. */
  readonly tailFor: (database: string) => CommandTail;
  /** Takes over when the lane has no member to ask, or lost a connection or a member. */
  readonly driver: FindWay;
  readonly database: string;
  readonly errors: FindErrors;
  /** How long a chain waits for a member while there are others, in milliseconds. Default: 2 s. */
  readonly memberTimeoutMs?: number;
  readonly onWarning: (message: string) => void;
}

/**
 * The data lane: finds whose replies are read off the socket straight into a slot. It asks each member once. When that
 * fails, the driver takes over: it finds members, waits for one, and retries by its own rules.
 */
export class Lane implements FindWay {
  readonly #parts: LaneParts;
  readonly #tail: CommandTail;

  constructor(parts: LaneParts) {
    this.#parts = parts;
    this.#tail = parts.tailFor(parts.database);
  }

  async find(command: Command, signal: AbortSignal, when: When = {}): Promise<Reply> {
    const { members, driver } = this.#parts;
    const { isForgotten, mayRetry, translate } = this.#parts.errors;
    signal.throwIfAborted();
    let forgotten: unknown = null;
    for (const pool of members.inTurn()) {
      try {
        return await this.#askInTime(pool, command, signal, when);
      } catch (error) {
        signal.throwIfAborted();
        if (when.at !== undefined && isForgotten(error)) forgotten ??= error;
        else if (!(error instanceof LaneBroken || mayRetry(error))) throw translate(error);
      }
    }
    // A point in time is gone only when no member has it.
    if (forgotten !== null) throw translate(forgotten);
    return driver.find(command, signal, when);
  }

  /** The lane to another database, over the same connections. */
  in(database: string, driver: FindWay): FindWay {
    return new Lane({ ...this.#parts, database, driver });
  }

  /** Why all reads go through the driver after all. Null when they do not. */
  get refusal(): string | null {
    return this.#parts.members.areSharded ? 'MongoDB is a sharded cluster' : null;
  }

  /** Ends the connections, for the lanes to all databases. */
  close(): void {
    this.#parts.members.close();
  }

  /** Rejects with LaneBroken when the next batch of a chain takes too long. Other reads have no known limit. */
  async #askInTime(pool: Pool, command: Command, signal: AbortSignal, when: When): Promise<Reply> {
    const { members, memberTimeoutMs = MEMBER_TIMEOUT_MS } = this.#parts;
    const isInChain = when.since !== undefined;
    if (!isInChain || !members.areSeveral) return this.#ask(pool, command, signal, when);
    try {
      return await withDeadline(memberTimeoutMs, signal, (end) => this.#ask(pool, command, end, when));
    } catch (error) {
      if (signal.aborted || !(error instanceof AppError)) throw error;
      pool.rest(REST_MS);
      throw new LaneBroken(`no response within ${memberTimeoutMs} ms`, { cause: error });
    }
  }

  async #ask(pool: Pool, command: Command, signal: AbortSignal, when: When): Promise<Reply> {
    const elements = elementsOf(command);
    const connection = await pool.take(signal);
    const message = await connection.request([elements, ...this.#tail.elements(when)], signal);
    try {
      const answer = readAnswer(message, this.#parts.session);
      const collection = command.find ?? command.aggregate;
      if (answer.cursor !== 0n) await this.#kill(connection, collection, answer.cursor, signal);
      pool.give(connection);
      return answer;
    } catch (error) {
      if (error instanceof LaneBroken) connection.end(error);
      else pool.give(connection);
      throw error;
    }
  }

  /** Closes a cursor that will not be read again, on its own connection. The server would keep it for 10 minutes. */
  async #kill(connection: Connection, collection: unknown, cursor: bigint, signal: AbortSignal) {
    const { session, database, onWarning } = this.#parts;
    const cursors = [Long.fromBigInt(cursor)];
    const command = { killCursors: collection, cursors, lsid: session.id, $db: database };
    try {
      (await connection.request([elementsOf(command)], signal)).slot.release();
    } catch (error) {
      onWarning(`a MongoDB cursor could not be closed and will time out: ${String(error)}`);
    }
  }
}

type Command = Readonly<Record<string, unknown>>;

interface LaneOptions extends Pick<LaneParts, 'driver' | 'errors' | 'onWarning'> {
  readonly slots: Slots;
  /** How long the server works on a find, in milliseconds. */
  readonly limitMs: number;
  /** How much longer its answer may take, in milliseconds. */
  readonly graceMs: number;
}

/** The driver's connection, whose members, settings and session the lane shares. */
interface DriverConnection extends Pick<LaneParts, 'session' | 'database'> {
  readonly client: MongoClient;
}

/** Opens the lane beside a connection's driver, with the members that the driver sees, and its settings. */
export function openLane({ client, session, database }: DriverConnection, options: LaneOptions): Lane {
  const { slots, driver, errors, limitMs, graceMs, onWarning } = options;
  const { options: settings, readPreference } = client;
  const { mode } = readPreference;
  const open: OpenOptions = {
    slots,
    connect: settings,
    scram: settings.credentials ? new Scram(settings.credentials) : null,
    applicationName: settings.appName ?? 'sluice',
    silenceMs: limitMs + graceMs,
  };
  const size = settings.maxPoolSize > 0 ? settings.maxPoolSize : MOST_CONNECTIONS;
  const warned = new Set<string>();
  const warn = (error: unknown) => {
    const message = `a MongoDB member is read through the driver, which is slower: the data lane cannot connect: ${String(error)}`;
    if (!warned.has(message)) onWarning(message);
    warned.add(message);
  };
  const newPool = (address: string) =>
    new Pool({
      open: (onEnd) => openConnection(address, open, onEnd),
      size,
      waitMs: open.silenceMs,
      onRefusal: warn,
    });
  const members = new Members(mode, settings.localThresholdMS, newPool);
  client.on('topologyDescriptionChanged', ({ newDescription }) => members.update(newDescription));
  const tailFor = ($db: string) =>
    new CommandTail(session, {
      maxTimeMS: limitMs,
      // A direct connection reads from the member that it leads to, whatever that is.
      ...(mode !== 'primary' || settings.directConnection
        ? { $readPreference: { mode: mode === 'primary' ? 'primaryPreferred' : mode } }
        : {}),
      $db,
    });
  return new Lane({ members, session, tailFor, driver, database, errors, onWarning });
}
