import { Long } from '../../values/bson.ts';
import { awaitAtMost, settlesWithin } from '../../turns/deadline.ts';
import { COMMAND_LIMIT_MS, type MongoConnection } from '../connection.ts';
import { eventsOf, stagesFor, type ChangeEvent, type EventReply } from './change-events.ts';
import type { ScopeFields } from '../../scope/predicate.ts';
import { isBefore, isShort, placeOfTime, startingAt, timeOf, type Place } from './place.ts';

/** The events of a stream since the last time. */
interface EventPage {
  readonly events: readonly ChangeEvent[];
  /** Every event before this place has come. It can be given to clients. */
  readonly behind: Place;
  /** Whether the server found no more events behind these. */
  readonly isDrained: boolean;
  /** The server has ended the stream, as it does behind the end of the database. */
  readonly hasEnded: boolean;
}

/** Which events to read, from which place, and how many at a time. */
export interface StreamRequest {
  readonly collections: readonly string[];
  readonly from: Place;
  readonly batch: number;
  /**
   * The stream is for the readers of scopes by these fields: changes that they do not see are left out. Every place is
   * then a time: a token holds the id of its event, and a reader may not know it.
   */
  readonly fields?: ScopeFields | undefined;
}

/** How long a reader that leaves waits for its cursor to be closed. Milliseconds. */
const CLOSING_MS = 1_000;
/** The collection that commands about cursors of a whole database name. */
const WHOLE_DATABASE = '$cmd.aggregate';

/**
 * Opens a change stream of a database: keys of rows only. The driver's own class is not used because it decodes ids to
 * JavaScript objects, which do not keep every BSON value. `close` it in the end. Rejects with the signal's reason or with
 * the driver's errors.
 */
export async function openEvents(connection: MongoConnection, request: StreamRequest, signal: AbortSignal) {
  const { collections, from, batch, fields } = request;
  const $changeStream = {
    ...startingAt(from),
    ...(fields && { fullDocumentBeforeChange: 'required' }),
    ...(fields && fields.hide.length > 0 && { fullDocument: 'required' }),
  };
  const command = {
    aggregate: 1,
    pipeline: [{ $changeStream }, ...stagesFor(collections, fields)],
    cursor: { batchSize: batch },
    readConcern: { level: 'majority' },
    maxTimeMS: COMMAND_LIMIT_MS,
  };
  signal.throwIfAborted();
  // The command is not aborted: its reply names the cursor that the server would keep.
  const opening = connection
    .onCursor(command, COMMAND_LIMIT_MS, undefined)
    .then((reply) => new EventCursor(connection, request, eventsOf(reply, fields)));
  try {
    return await awaitAtMost(COMMAND_LIMIT_MS, signal, opening);
  } catch (error) {
    const closed = opening.then(
      (unused) => unused.close(),
      () => undefined, // the caller has the error, or has left
    );
    await settlesWithin(closed, CLOSING_MS);
    throw error;
  }
}

/** A cursor of events that the server keeps. */
class EventCursor {
  readonly #connection: MongoConnection;
  readonly #request: StreamRequest;
  #id: bigint;
  #first: EventReply | null;
  /** Behind all that was passed on. */
  #passed: Place;
  /** The last events that came, when the place behind them cannot be given to clients. */
  #held: readonly ChangeEvent[] = [];

  constructor(connection: MongoConnection, request: StreamRequest, opened: EventReply) {
    this.#connection = connection;
    this.#request = request;
    this.#id = opened.cursor;
    this.#first = opened;
    this.#passed = request.from;
  }

  /** Waits for events, for at most `waitMs` milliseconds. Rejects as `openEvents` does. */
  async next(waitMs: number, signal: AbortSignal): Promise<EventPage> {
    const reply = this.#first ?? (await this.#more(waitMs, signal));
    this.#first = null;
    return this.#pageOf(reply);
  }

  /** Closes the server's cursor. Resolves also when that fails: the server then closes it by itself after a while. */
  async close(): Promise<void> {
    if (this.#id === 0n) return;
    const command = { killCursors: WHOLE_DATABASE, cursors: [Long.fromBigInt(this.#id)] };
    this.#id = 0n;
    await this.#connection.run(command).catch(() => undefined); // no member has it any more, or none answers
  }

  async #more(waitMs: number, signal: AbortSignal): Promise<EventReply> {
    const { batch, fields } = this.#request;
    const command = {
      getMore: Long.fromBigInt(this.#id),
      collection: WHOLE_DATABASE,
      batchSize: batch,
      maxTimeMS: waitMs, // for getMore of such a cursor: how long to wait for an event
    };
    const reply = await this.#connection.onCursor(command, waitMs + COMMAND_LIMIT_MS, signal);
    const events = eventsOf(reply, fields);
    this.#id = events.cursor;
    return events;
  }

  /**
   * When the place behind an event of the last time is too long for clients, the events of that time are held back until
   * it is over, because all events of a transaction have one time. Then a time is the place, and nothing comes twice.
   */
  #pageOf({ events: came, behind, cursor }: EventReply): EventPage {
    const { fields } = this.#request;
    const isDrained = came.length === 0;
    const shown = fields ? came.filter(({ isUnseen }) => !isUnseen) : came;
    const all = this.#held.length > 0 ? [...this.#held, ...shown] : shown;
    const last = came.at(-1) ?? all.at(-1); // also one that is not shown lets the time go on
    const pass = (events: readonly ChangeEvent[], place: Place): EventPage => {
      this.#held = all.slice(events.length);
      this.#passed = place;
      return { events, behind: place, isDrained, hasEnded: cursor === 0n };
    };
    if (!last) return pass(all, fields ? this.#timeAt(behind) : behind);
    const { time: until } = last;
    if (!fields && isShort(behind) && all.every(({ time, place }) => time < until || isShort(place)))
      return pass(all, behind);
    // The server keeps the place behind its last event while nothing else happens.
    if (isDrained) return pass(all, placeOfTime(until + 1n));
    const over = all.filter(({ time }) => time < until);
    return pass(over, this.#timeAt(placeOfTime(until)));
  }

  /** The time of a place, which stands before it, but behind all that was passed on. */
  #timeAt(place: Place): Place {
    const time = placeOfTime(timeOf(place));
    return isBefore(this.#passed, time) ? time : this.#passed;
  }
}
