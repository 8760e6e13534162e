import type { Subject } from './subject.ts';

/** A part of the protocol (docs/PROTOCOL.md) that a server is asked to show. */
export interface Check {
  /** What holds, as a sentence without its full stop. */
  readonly promise: string;
  /** Resolves with what was asked and seen. Rejects with Broken when it does not hold, and with Unseen when that cannot be seen. */
  readonly look: (subject: Subject) => Promise<string>;
}
