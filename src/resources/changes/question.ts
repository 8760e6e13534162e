import type { RowEncoder } from '../../rows/rows.ts';
import type { Plan, RowReader } from '../../store/store.ts';
import type { FeedReader } from '../../store/turns/readers.ts';

/** What followers have in common that get the same lines at the same place. */
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
  /** See RouteOptions. */
  readonly begun: () => number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** See AnswerOptions. */
  readonly heartbeatMs: number;
}
