/** Whether a promise holds on this machine and its store, and how that was seen. */
export interface Finding {
  /** The promise, as a sentence without its full stop. */
  readonly promise: string;
  /** Null: it could not be seen. */
  readonly holds: boolean | null;
  /** The query and what it showed, or why the promise does not hold. */
  readonly seen: string;
}
