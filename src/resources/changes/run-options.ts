import type { FeedReader } from '../../store/tail.ts';
import type { ChainReader, Plan } from '../../store/store.ts';
import type { FeedCursor } from './cursor.ts';

/** When a feed ends of itself. */
export interface FeedEnd {
  /** Whether a checkpoint comes before the feed waits, or walks. */
  readonly opens: boolean;
  /** Whether it goes on when it has caught up. */
  readonly follows: boolean;
  /** How long it waits for the first change when there is none. Milliseconds. */
  readonly waitMs: number;
  /** The most keys. */
  readonly limit: number;
}

export interface FeedOptions {
  readonly collection: string;
  /** In order of id, with nothing but equalities. */
  readonly plan: Plan;
  readonly rows: ChainReader;
  readonly changes: FeedReader;
  readonly from: FeedCursor;
  readonly end: FeedEnd;
  /** A clock in milliseconds. */
  readonly now: () => number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** A feed that has nothing to tell sends a checkpoint after this time. Milliseconds; 15 s by default. */
  readonly heartbeatMs?: number;
}
