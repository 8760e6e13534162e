import { Long } from '../../bson.ts';
import { awaitAtMost, settlesWithin } from '../../deadline.ts';
import { COMMAND_LIMIT_MS, type MongoConnection } from '../connection.ts';
import { eventsOf, stagesFor, type ChangeEvent, type EventReply } from './events.ts';
import type { View } from '../../change-feed.ts';
import { isBefore, isShort, placeOfTime, startingAt, timeOf, type Place } from './place.ts';

/** What a stream has told since the last time. */
export interface Told {
  readonly events: readonly ChangeEvent[];
  /** Every event before this place has been told. It can be given to clients. */
  readonly behind: Place;
  /** Whether the server found no more events when it told these. */
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
   * What the stream's readers see of rows. Changes that it does not show are left out. Every place that the stream then
   * tells is a time: a token holds the id of its event, and a reader may not know it.
   */
  readonly view?: View | undefined;
}

/** How long a reader that leaves waits for its cursor to be closed. Milliseconds. */
const CLOSING_MS = 1_000;
/** The collection that commands about cursors of a whole database name. */
const WHOLE_DATABASE = '$cmd.aggregate';

/**
 * A change stream of a database: keys of rows only. The driver's own class is not used because it decodes ids to
 * JavaScript objects, which do not keep every BSON value. `close` it in the end.
 */
export class EventCursor {
  readonly #connection: MongoConnection;
  readonly #request: StreamRequest;
  #id: bigint;
  #first: EventReply | null;
  #behind: Place;
  /** The events at the end of what was told, when the place behind them cannot be given to clients. */
  #held: readonly ChangeEvent[] = [];

  private constructor(connection: MongoConnection, request: StreamRequest, first: EventReply) {
    this.#connection = connection;
    this.#request = request;
    this.#behind = request.from;
    this.#first = first;
    this.#id = first.cursor;
  }

  /** Opens a stream. Rejects with the signal's reason or with the driver's errors. */
  static async open(
    connection: MongoConnection,
    request: StreamRequest,
    signal: AbortSignal,
  ): Promise<EventCursor> {
    const { collections, from, batch, view } = request;
    const $changeStream = {
      ...startingAt(from),
      ...(view && { fullDocumentBeforeChange: 'required' }),
      ...(view && view.hide.length > 0 && { fullDocument: 'required' }),
    };
    const command = {
      aggregate: 1,
      pipeline: [{ $changeStream }, ...stagesFor(collections, view)],
      cursor: { batchSize: batch },
      readConcern: { level: 'majority' },
      maxTimeMS: COMMAND_LIMIT_MS,
    };
    signal.throwIfAborted();
    // The command is not aborted: its reply names the cursor that the server would keep.
    const opening = connection
      .onCursor(command, COMMAND_LIMIT_MS, undefined)
      .then((reply) => new EventCursor(connection, request, eventsOf(reply, view?.hide)));
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

  /** Waits for events, for at most `waitMs` milliseconds. Rejects as `open` does. */
  async next(waitMs: number, signal: AbortSignal): Promise<Told> {
    const first = this.#first;
    this.#first = null;
    return this.#toldBy(first ?? (await this.#more(waitMs, signal)));
  }

  /** Closes the server's cursor. Resolves also when that fails: the server then closes it by itself after a while. */
  async close(): Promise<void> {
    const id = this.#id;
    this.#id = 0n;
    if (id === 0n) return;
    const command = { killCursors: WHOLE_DATABASE, cursors: [Long.fromBigInt(id)] };
    await this.#connection.run(command).catch(() => undefined); // no member has it any more, or none answers
  }

  async #more(waitMs: number, signal: AbortSignal): Promise<EventReply> {
    const command = {
      getMore: Long.fromBigInt(this.#id),
      collection: WHOLE_DATABASE,
      batchSize: this.#request.batch,
      maxTimeMS: waitMs, // for getMore of such a cursor: how long to wait for an event
    };
    const reply = await this.#connection.onCursor(command, waitMs + COMMAND_LIMIT_MS, signal);
    const events = eventsOf(reply, this.#request.view?.hide);
    this.#id = events.cursor;
    return events;
  }

  /**
   * When the place behind the last event is too long for clients, the events of its time are held back until that time
   * is over, because all events of a transaction have one time. Then a time is the place, and nothing is told twice.
   */
  #toldBy({ events: came, behind, cursor }: EventReply): Told {
    const state = { isDrained: came.length === 0, hasEnded: cursor === 0n };
    const { view } = this.#request;
    const shown = view ? came.filter(({ isSilent }) => !isSilent) : came;
    const all = this.#held.length > 0 ? [...this.#held, ...shown] : shown;
    const last = came.at(-1) ?? all.at(-1); // also one that is not shown lets the time go on
    if (view) {
      if (!last) return { ...this.#tell(all, this.#timeAt(behind)), ...state };
    } else if (!last || isShort(behind)) return { ...this.#tell(all, behind), ...state };
    // The server keeps the place behind its last event while nothing else happens.
    if (state.isDrained) return { ...this.#tell(all, placeOfTime(last.time + 1n)), ...state };
    const over = all.filter(({ time }) => time < last.time);
    const told = this.#tell(over, this.#timeAt(placeOfTime(last.time)));
    this.#held = all.slice(over.length);
    return { ...told, ...state };
  }

  /** The time of a place, which stands before it, but behind all that was told. */
  #timeAt(place: Place): Place {
    const time = placeOfTime(timeOf(place));
    return isBefore(this.#behind, time) ? time : this.#behind;
  }

  #tell(events: readonly ChangeEvent[], behind: Place): Pick<Told, 'events' | 'behind'> {
    this.#held = [];
    this.#behind = behind;
    return { events, behind };
  }
}
