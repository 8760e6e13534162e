import type { Collection, Declaration, OwnedCollection } from './collection.ts';

/**
 * Computes a record's new document from its current one (null: the record does not exist). Returns null to delete the
 * record, or `keep` to leave it unchanged. When it throws, nothing is written. It may be called several times, each
 * time with the document current at that moment, so it must have no side effects.
 */
export type Change = (current: Uint8Array | null) => Uint8Array | null | 'keep';

/** The document before and after a change. Null: the record did not exist before, or does not exist after. */
export interface RecordChange {
  readonly before: Uint8Array | null;
  readonly after: Uint8Array | null;
}

/**
 * A collection whose rows the server itself writes one at a time (users, exports). Their `_id` is a string.
 * Implementations: mongo/records.ts, sqlite.ts. test/contracts/records.contract.ts runs on both.
 */
export interface Records extends Collection, Pick<OwnedCollection, 'addIndex'> {
  /**
   * Changes the record of this id atomically: no one else writes it between the document that the last call of
   * `change` saw and the document that it returned. Resolves with both documents when the change is durable
   * (w:majority; flushed). Rejects with the error that `change` threw, or as reads do. After `store-unavailable` the
   * change may or may not have been made.
   */
  change(id: string, change: Change): Promise<RecordChange>;
}

/** The records that a part of the server keeps. `indexes` are made where their collection is made. */
export interface RecordDeclaration extends Declaration {
  /** The condition that every record meets, in the language of MongoDB. */
  readonly validator: Readonly<Record<string, unknown>>;
}
