import type { Key } from '../../keys.ts';
import type { Tables } from '../tables.ts';
import { recordKey } from './log-keys.ts';
import type { LogState } from './log.ts';
import { walkLog } from './log-walk.ts';
import { headOf } from './record.ts';

/** Records that one transaction removes. It writes fewer, except for the largest imports. */
const PRUNED_AT_ONCE = 32;
/**
 * The most ids that the log of a set has. Where twice the number of its rows is more, that many: a reader that is
 * further behind has less to read when it begins anew.
 */
const MOST_IDS = 1_000_000;
/**
 * Transactions begin to remove records when this part of the limits is exceeded. A look at the log then finds many
 * records to remove, and most transactions need no look.
 */
const SPARE = 1 / 1_024;

export interface RetentionOptions {
  /** How long changes are kept, in milliseconds. */
  readonly ttlMs: number;
  /** A clock in milliseconds since 1970. */
  readonly now: () => number;
  /** The most ids in the log of a small set, 1,000,000 by default. */
  readonly mostIds?: number | undefined;
}

/** The first records of a log that are not to be kept, and the state of the log without them. */
export interface Prunable extends Pick<LogState, 'floor' | 'ids'> {
  readonly keys: readonly Key[];
}

/** Tells which records of a log are not to be kept: the oldest ones. */
export class Retention {
  readonly #tables: Tables;
  readonly #options: RetentionOptions;
  /**
   * For each set, its oldest record was not written before this time while its log has this floor. Every removal of
   * records, also by another process, raises the floor.
   */
  readonly #oldest = new Map<number, { readonly floor: number; readonly time: number }>();

  constructor(tables: Tables, options: RetentionOptions) {
    this.#tables = tables;
    this.#options = options;
  }

  /** Whether a transaction should look for records to remove. `rows` returns the number of rows of the set. */
  isDue(set: number, { floor, ids }: LogState, rows: () => number): boolean {
    const { ttlMs, now } = this.#options;
    const oldest = this.#oldest.get(set);
    if (oldest?.floor !== floor || now() - oldest.time > ttlMs * (1 + SPARE)) return true;
    return ids > this.#mostIds(0) * (1 + SPARE) && ids > this.#mostIds(rows()) * (1 + SPARE);
  }

  /** The first records that are not to be kept, at most `most`. */
  prunable(set: number, { floor, ids }: LogState, rows: number, most = PRUNED_AT_ONCE): Prunable {
    const now = this.#options.now();
    const mostIds = this.#mostIds(rows);
    const keys: Key[] = [];
    /** When the oldest record to keep was written. Null: not known. */
    const kept: { since: number | null } = { since: now };
    let [pruned, left] = [floor, ids];
    walkLog(this.#tables, set, 0, (end, record) => {
      const { time, count } = headOf(record);
      const isKept = end > floor && now - time <= this.#options.ttlMs && left <= mostIds;
      if (isKept || keys.length >= most) {
        kept.since = isKept ? time : null;
        return false;
      }
      keys.push(recordKey(set, end));
      pruned = Math.max(pruned, end);
      left -= count;
      return true;
    });
    if (kept.since === null) this.#oldest.delete(set);
    else this.#oldest.set(set, { floor: pruned, time: kept.since });
    return { floor: pruned, ids: left, keys };
  }

  /** Everything in the log of a set is to be removed. */
  forget(set: number): void {
    this.#oldest.delete(set);
  }

  #mostIds(rows: number): number {
    return Math.max(this.#options.mostIds ?? MOST_IDS, 2 * rows);
  }
}
