import { isRunning, type Holder } from '../holder.ts';

/** The import of a process into a set, as its record has it. */
export interface ImportRecord {
  readonly id: string;
  readonly holder: Holder;
  /** Milliseconds since 1970. */
  readonly until: number;
  /** Present: it fills tables that nothing else leads to. */
  readonly side?: SideTables;
}

export interface SideTables {
  /** The numbers of the tables. The last one becomes that of the set. */
  readonly numbers: readonly number[];
  /** The rows that the set had when the import began. */
  readonly rows: number;
  /** The number of the set's tables then, and of the last change in their log: what came later stays. */
  readonly of: number;
  readonly after: number;
}

export function isUnderWay({ holder, until }: ImportRecord, now: number): boolean {
  return isRunning(holder) ?? now < until;
}
