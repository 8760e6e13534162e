import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { shownSums, type LineSums } from '../../pipeline/checkpoints.ts';
import { crc32 } from '../../pipeline/crc32.ts';
import { crc32Combine } from '../../pipeline/crc32-combine.ts';
import type { Sink } from '../../pipeline/sink.ts';
import type { RowEncoder } from '../../rows/rows.ts';
import type { ChangedKeys, FeedPlace } from '../../store/change-feed.ts';
import type { Plan, RowReader } from '../../store/store.ts';
import type { FeedReader } from '../../store/readers.ts';
import { encodeFeedCursor } from '../token/feed-cursor.ts';
import { BEHIND_MS, isWhole, linesOf } from './follow.ts';
import { checkpointLine, removedLine } from './lines.ts';

/** The most bytes of lines that readers get at once: what a reader that stalls keeps of them. Aim at half of it. */
const MOST_BYTES = 128 * 1024;
const MOST_KEYS = 1_000;
const FIRST_LINE_BYTES = 256;
/** How long readers are served in a row before the process looks at its sockets and timers. Milliseconds. */
const TURN_MS = 1;
/** How long a room rests at most when it has given a page. Milliseconds. */
const LONGEST_REST_MS = 200;

/** What readers of one room have in common: at the same place they get the same lines. */
export interface Question {
  /** The same text for the same question. */
  readonly name: string;
  readonly collection: string;
  readonly plan: Plan;
  /** For the readers' own loops. */
  readonly rows: RowReader;
  readonly changes: FeedReader;
  /** Makes an encoder of rows as lines. */
  readonly lines: () => RowEncoder;
  /** Whole lines as the response carries them. */
  readonly framed: (lines: Uint8Array) => Uint8Array;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** See AnswerOptions. */
  readonly heartbeatMs: number;
}

/** The sums of the lines that a reader was sent. */
export interface FeedSums extends LineSums {
  readonly removed: number;
}

/** A place, and what a checkpoint there says of it. */
interface Stop {
  readonly place: FeedPlace;
  /** A place to resume at. */
  readonly cursor: string;
  readonly isUpToDate: boolean;
}

/** A reader that was sent every line before a place, and the checkpoint there. */
export interface Standing {
  readonly at: Stop;
  readonly sums: FeedSums;
}

/** The lines that a read of the log brought, and where readers are behind them. */
interface Page extends Standing {
  /** `isUpToDate` is known when the rows were read. */
  at: Stop;
  /** The text, and memory for the checkpoint behind it: a copy of the text for each reader would all be garbage. */
  bytes: Buffer;
  readonly length: number;
}

/** A reader in a room, and what it was sent. There may be thousands, so it keeps nothing that the room has. */
interface Member extends Standing {
  /** The same object for all readers at a place. */
  at: Stop;
  sums: FeedSums;
  readonly sink: Sink;
  /** Called with the number of rows that the response has so far. */
  readonly wrote: (rows: number) => void;
  /** Resolves when the sink has taken what was written last. Null: it has. */
  busy: Promise<unknown> | null;
  /** The reader leaves, for an error when there is one. */
  readonly leave: (failure?: Error) => void;
}

const rooms = new WeakMap<FeedReader, Map<string, Room>>();

/** The open room of a question. */
export function roomOf({ changes, name }: Pick<Question, 'changes' | 'name'>): Room | undefined {
  return rooms.get(changes)?.get(name);
}

/**
 * Followers with everything up to one place and the same question wait in one room. A change is read, looked up and
 * encoded once, and written to each with its own checkpoint. What is not so simple sends them back to their own loops,
 * each from its place: a sink behind with lines, many bytes of lines, an error of the store, the end of the server.
 */
export class Room {
  readonly question: Question;
  readonly #members = new Set<Member>();
  readonly #leaving = new AbortController();
  /** Every member has all before it, or is being given it. */
  #at: Stop;
  /** The average of late. */
  #lineBytes = FIRST_LINE_BYTES;

  private constructor(question: Question, at: Stop) {
    this.question = question;
    this.#at = at;
    const { changes, name, stopping } = question;
    const others = rooms.get(changes) ?? new Map<string, Room>();
    rooms.set(changes, others.set(name, this));
    stopping.addEventListener('abort', this.#close);
  }

  /**
   * Waits in the room of a question. `parked`: see PumpObserver. Resolves with where the reader is when it has to read on by itself, after its sink has
   * taken everything. Rejects with the error of the sink or its signal's reason.
   */
  static async stay(
    question: Question,
    standing: Standing,
    { sink, wrote, parked }: Pick<Member, 'sink' | 'wrote'> & { readonly parked: () => () => void },
  ): Promise<Standing> {
    const { at, sums } = standing;
    sink.signal.throwIfAborted();
    if (question.stopping.aborted) return standing;
    const room = roomOf(question) ?? new Room(question, at);
    if (!room.takes(at.place)) return standing;
    // Without an await, which would keep where it stood for as long as it stays.
    return room.#join(sums, sink, wrote).then((member) => taken(member, parked));
  }

  get size(): number {
    return this.#members.size;
  }

  /** Whether a reader at this place misses nothing in the room. What it gets twice does no harm. */
  takes(place: FeedPlace): boolean {
    return this.question.changes.reaches(place, this.#at.place);
  }

  /** A reader that is beyond the room's place gets what lies between again. */
  #join(sums: FeedSums, sink: Sink, wrote: Member['wrote']): Promise<Member> {
    return new Promise((resolve, reject) => {
      const gone = () => leave(sink.signal.reason as Error);
      const leave: Member['leave'] = (failure) => {
        sink.signal.removeEventListener('abort', gone);
        this.#members.delete(member);
        if (this.#members.size === 0) this.#close();
        if (failure) reject(failure);
        else resolve(member);
      };
      const member: Member = { at: this.#at, sums, sink, wrote, busy: null, leave };
      sink.signal.addEventListener('abort', gone);
      this.#members.add(member);
      if (this.#members.size === 1) void this.#run();
    });
  }

  /** Ends the room. All read on by themselves. */
  readonly #close = (): void => {
    const { changes, name, stopping } = this.question;
    stopping.removeEventListener('abort', this.#close);
    if (roomOf(this.question) === this) rooms.get(changes)?.delete(name);
    this.#leaving.abort(new Error('the room is closed'));
    for (const { leave } of this.#members) leave();
  };

  async #run(): Promise<void> {
    const { now, heartbeatMs, changes, plan } = this.question;
    const { signal } = this.#leaving;
    let [wait, beat, given] = [heartbeatMs, now() + heartbeatMs, true];
    try {
      while (!signal.aborted) {
        const most = Math.max(1, Math.min(MOST_KEYS, Math.floor(MOST_BYTES / 2 / this.#lineBytes)));
        const changed = await changes.read(this.#at.place, { most, waitMs: wait }, plan.identity, signal);
        const { keys } = changed;
        const page = await this.#pageOf(changed);
        if (page.length > MOST_BYTES) break;
        const isUpToDate = await isWhole(changes, changed, { plan, reads: signal });
        this.#at = page.at = { ...page.at, isUpToDate };
        // Lines may have come before it was known that they were the last: then a checkpoint says so.
        if (keys.length > 0 || now() >= beat || (isUpToDate && !given)) {
          const begun = now();
          await this.#give(page);
          [beat, given] = [now() + heartbeatMs, isUpToDate];
          await this.#rest(now() - begun);
        }
        wait = isUpToDate ? Math.max(1, beat - now()) : keys.length > 0 ? 0 : BEHIND_MS;
      }
    } catch {
      // Each reader meets the error in its own loop, and says what it is.
    } finally {
      this.#close();
    }
  }

  /** The lines of keys, read to their end unless they are too many bytes for a room. */
  async #pageOf(changed: ChangedKeys): Promise<Page> {
    const { collection, plan, changes, lines, framed } = this.question;
    const { next: place, isUpToDate } = changed;
    const position = { place, walk: 'over' } as const;
    const texts: Uint8Array[] = [];
    let [rows, removed, bytes] = [0, 0, 0];
    if (changed.keys.length > 0) {
      const encoder = lines();
      const add = (text: Uint8Array) => {
        bytes += text.length;
        texts.push(text);
      };
      try {
        for await (const step of linesOf(changes, changed, position, { plan, reads: this.#leaving.signal })) {
          for (const chunk of step.rows ? encoder.encode(step.rows, MOST_BYTES) : []) add(Buffer.from(chunk));
          for (const id of step.removed ?? []) add(Buffer.from(removedLine(id)));
          [rows, removed] = [rows + (step.rows?.rows ?? 0), removed + (step.removed?.length ?? 0)];
          if (bytes > MOST_BYTES) break;
        }
      } finally {
        encoder.close();
      }
      this.#lineBytes = bytes / Math.max(1, rows + removed);
    }
    const text = Buffer.concat(texts);
    const cursor =
      encodeFeedCursor(collection, plan, { ...position, identity: plan.identity }) ?? this.#at.cursor;
    const sums = { rows, removed, bytes, crc: crc32(text) };
    const bytesOfText = Buffer.from(framed(text));
    return { at: { place, isUpToDate, cursor }, sums, bytes: bytesOfText, length: bytesOfText.length };
  }

  /** Gives all members lines, and lets others run in between. */
  async #give(page: Page): Promise<void> {
    let end = performance.now() + TURN_MS;
    for (const member of [...this.#members]) {
      if (performance.now() >= end) {
        await turn();
        end = performance.now() + TURN_MS;
      }
      if (this.#members.has(member)) this.#send(member, page);
    }
  }

  /** Others have as much time as the readers had, and what changes meanwhile comes as one line. */
  async #rest(tookMs: number): Promise<void> {
    const ms = Math.min(LONGEST_REST_MS, tookMs);
    if (ms >= TURN_MS) await sleep(ms, undefined, { signal: this.#leaving.signal });
  }

  #send(member: Member, page: Page): void {
    const {
      at,
      sums: { rows, removed, bytes, crc },
    } = page;
    const { sink, leave, wrote, sums: before } = member;
    if (member.busy) {
      leave();
      return;
    }
    const sums = {
      rows: before.rows + rows,
      removed: before.removed + removed,
      bytes: before.bytes + bytes,
      crc: bytes > 0 ? crc32Combine(before.crc, crc, bytes) : before.crc,
    };
    [member.at, member.sums] = [at, sums];
    const line = Buffer.from(checkpointLine({ ...at, ...shownSums(sums), removed: sums.removed }));
    try {
      wrote(sums.rows);
      const taken = sink.write(withLine(page, this.question.framed(line)));
      const flushed = sink.flush();
      if (!taken && !flushed) return;
      member.busy = Promise.all([Promise.resolve(taken), Promise.resolve(flushed)]).then(
        () => (member.busy = null),
        (error: unknown) => leave(error as Error),
      );
    } catch (error) {
      leave(error as Error);
    }
  }
}

/** The text of a page and a line behind it, in memory that the next call uses again. */
function withLine(page: Page, line: Uint8Array): Uint8Array {
  const end = page.length + line.length;
  if (page.bytes.length < end) page.bytes = Buffer.concat([page.bytes.subarray(0, page.length)], 2 * end);
  page.bytes.set(line, page.length);
  return page.bytes.subarray(0, end);
}

/** The member when its sink has taken everything. */
async function taken(member: Member, parked: () => () => void): Promise<Standing> {
  const over = member.busy && parked();
  await member.busy;
  over?.();
  return member;
}
