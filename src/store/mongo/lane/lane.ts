import type { ClientSession } from 'mongodb';
import { Long } from '../../bson.ts';
import { AppError } from '../../../errors.ts';
import { bounded } from '../../deadline.ts';
import { COMMAND_LIMIT_MS, GRACE_MS } from '../connection.ts';
import type { MongoConnection } from '../connection.ts';
import { isForgotten, mayRetry, translate } from '../errors.ts';
import type { FindWay, Reply, When } from '../reply.ts';
import type { Slots } from '../../slots.ts';
import { readAnswer } from './answer.ts';
import { CommandTail, elementsOf } from './command.ts';
import type { Connection } from './connection.ts';
import { Members } from './members.ts';
import { LaneBroken } from './message.ts';
import { openConnection } from './open.ts';
import type { OpenOptions } from './open.ts';
import { Pool } from './pool.ts';
import { Scram } from './scram.ts';

/** So long one member is waited for in mid-chain, where a batch takes milliseconds, while there are others to ask. */
const PATIENCE_MS = 2_000;
/** And then let alone, as the next batch would wait as long: it hangs, or lacks what the chain has begun with. */
const REST_MS = 5_000;

/** To one member, where the URI says that there is no limit. */
const MOST_CONNECTIONS = 100;

export interface LaneParts {
  readonly members: Members;
  readonly session: ClientSession;
  /** What every find ends with. */
  readonly tail: CommandTail;
  /** Takes over when the lane has nobody to ask, or lost a connection or a member. */
  readonly driver: FindWay;
  readonly database: string;
  /** How long a member is waited for in mid-chain while there are others; 2 s by default. */
  readonly patienceMs?: number;
  readonly onWarning: (message: string) => void;
}

/**
 * The data lane: finds whose replies are read off the socket straight into a slot. It is for good times, and asks each member
 * once. What it could not do the driver does, which finds members, waits for one, and asks again by its own rules.
 */
export class Lane implements FindWay {
  readonly #parts: LaneParts;
  /** Cursors being killed. */
  readonly #killing = new Set<Promise<void>>();

  constructor(parts: LaneParts) {
    this.#parts = parts;
  }

  /** Why all reads are the driver's after all; null when they are not. */
  get refusal(): string | null {
    return this.#parts.members.areSharded ? 'it is a sharded cluster' : null;
  }

  async find(
    command: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    when: When = {},
  ): Promise<Reply> {
    signal.throwIfAborted();
    let forgotten: unknown = null;
    for (const pool of this.#parts.members.inTurn()) {
      try {
        return await this.#askPatiently(pool, command, signal, when);
      } catch (error) {
        signal.throwIfAborted();
        if (when.at !== undefined && isForgotten(error)) forgotten ??= error;
        else if (!isPassing(error)) throw translate(error);
      }
    }
    // A point in time is gone when no member has it.
    if (forgotten !== null) throw translate(forgotten);
    return this.#parts.driver.find(command, signal, when);
  }

  async settle(): Promise<void> {
    await Promise.all(this.#killing);
    await this.#parts.driver.settle();
  }

  async close(): Promise<void> {
    await this.settle();
    this.#parts.members.close();
    await this.#parts.driver.close();
  }

  /** LaneBroken when a chain's next batch is waited for too long: of another read nobody knows how long it may take. */
  async #askPatiently(
    pool: Pool,
    command: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    when: When,
  ): Promise<Reply> {
    const { members, patienceMs = PATIENCE_MS } = this.#parts;
    const isInChain = when.since !== undefined;
    if (!isInChain || !members.areSeveral) return this.#ask(pool, command, signal, when);
    try {
      return await bounded(patienceMs, signal, (end) => this.#ask(pool, command, end, when));
    } catch (error) {
      if (signal.aborted || !(error instanceof AppError)) throw error;
      pool.rest(REST_MS);
      throw new LaneBroken(`no answer within ${patienceMs} ms`, { cause: error });
    }
  }

  async #ask(
    pool: Pool,
    command: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    when: When,
  ): Promise<Reply> {
    const { tail, session } = this.#parts;
    const elements = elementsOf(command);
    const connection = await pool.take(signal);
    const message = await connection.request([elements, ...tail.elements(when)], signal);
    try {
      const answer = readAnswer(message, session);
      if (answer.cursor === 0n) pool.give(connection);
      else this.#kill(pool, connection, command.find, answer.cursor);
      return answer;
    } catch (error) {
      if (error instanceof LaneBroken) connection.end(error);
      else pool.give(connection);
      throw error;
    }
  }

  /** Gives back a cursor that nobody will ask again, where it is; the server would keep it for 10 minutes. */
  #kill(pool: Pool, connection: Connection, collection: unknown, cursor: bigint): void {
    const { database: $db, session } = this.#parts;
    const command = { killCursors: collection, cursors: [Long.fromBigInt(cursor)], lsid: session.id, $db };
    const killing = connection.request([elementsOf(command)]).then(
      (message) => {
        message.slot.release();
        pool.give(connection);
      },
      (error: unknown) =>
        this.#parts.onWarning(`A cursor could not be closed and will time out: ${String(error)}`),
    );
    this.#killing.add(killing);
    void killing.finally(() => this.#killing.delete(killing));
  }
}

/** Whether another member, or the same a little later, will do. */
function isPassing(error: unknown): boolean {
  return error instanceof LaneBroken || mayRetry(error);
}

/** The lane beside a connection's driver: it sees the members as the driver does, and goes by its settings. */
export function openLane(
  { client, session, database }: MongoConnection,
  slots: Slots,
  driver: FindWay,
  onWarning: (message: string) => void,
): Lane {
  const { options, readPreference } = client;
  const { mode } = readPreference;
  const open: OpenOptions = {
    slots,
    connect: options,
    scram: options.credentials ? new Scram(options.credentials) : null,
    applicationName: options.appName ?? 'sluice',
    silenceMs: COMMAND_LIMIT_MS + GRACE_MS,
  };
  const size = options.maxPoolSize > 0 ? options.maxPoolSize : MOST_CONNECTIONS;
  const warned = new Set<string>();
  const warn = (error: unknown) => {
    const message = `A member is read through the driver, since the data lane cannot connect: ${String(error)}`;
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
  const members = new Members(mode, options.localThresholdMS, newPool);
  client.on('topologyDescriptionChanged', ({ newDescription }) => members.update(newDescription));
  const tail = new CommandTail(session, {
    maxTimeMS: COMMAND_LIMIT_MS,
    // A direct connection reads from whatever member it leads to.
    ...(mode !== 'primary' || options.directConnection
      ? { $readPreference: { mode: mode === 'primary' ? 'primaryPreferred' : mode } }
      : {}),
    $db: database,
  });
  return new Lane({ members, session, tail, driver, database, onWarning });
}
