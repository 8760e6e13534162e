import type { ClientSession } from 'mongodb';
import { BSON, Timestamp, UUID, type Document } from '../../values/bson.ts';
import type { Identity } from '../../bookmark.ts';
import type { When } from './find-way.ts';

const NO_BYTES: Uint8Array = new Uint8Array(0);
const AFTER_NAME = 'afterClusterTime\0';
const AT_NAME = 'atClusterTime\0';
const NO_TIME = new Timestamp(0n);

/** The elements of a BSON document: its bytes without the size and the final NUL. */
export function elementsOf(document: Document): Uint8Array {
  return BSON.serialize(document, { ignoreUndefined: false }).subarray(4, -1);
}

/**
 * The fields that every find ends with, serialized once: concern, time limit, session, read preference, database, the
 * collection's UUID, and times: those that the read states, or those of the causal session, which the driver and the
 * lane both read and advance.
 */
export class CommandTail {
  readonly #session: ClientSession;
  readonly #plain: Uint8Array;
  readonly #causal: Buffer;
  readonly #afterAt: number;
  readonly #snapshot: Buffer;
  readonly #atAt: number;
  #clusterTime: unknown = null;
  #clusterTimeElements = NO_BYTES;
  /** The identity of the last read. It hardly ever changes. */
  #identity: Identity | undefined;
  #identityElements = NO_BYTES;

  constructor(session: ClientSession, rest: Document) {
    this.#session = session;
    const tail = (readConcern: Document) =>
      Buffer.from(elementsOf({ readConcern, lsid: session.id, ...rest }));
    this.#plain = tail({ level: 'majority' });
    this.#causal = tail({ level: 'majority', afterClusterTime: NO_TIME });
    this.#afterAt = this.#causal.indexOf(AFTER_NAME) + AFTER_NAME.length;
    this.#snapshot = tail({ level: 'snapshot', atClusterTime: NO_TIME });
    this.#atAt = this.#snapshot.indexOf(AT_NAME) + AT_NAME.length;
  }

  /** The elements for a read of this time and collection. Valid until the next call. */
  elements({ at, since, identity }: When): readonly Uint8Array[] {
    const { operationTime, clusterTime } = this.#session;
    if (identity !== this.#identity) {
      this.#identity = identity;
      this.#identityElements =
        identity === undefined ? NO_BYTES : elementsOf({ collectionUUID: new UUID(identity) });
    }
    if (clusterTime !== this.#clusterTime) {
      this.#clusterTime = clusterTime;
      this.#clusterTimeElements = clusterTime ? elementsOf({ $clusterTime: clusterTime }) : NO_BYTES;
    }
    if (at !== undefined) {
      this.#snapshot.writeBigUInt64LE(at, this.#atAt);
      return [this.#snapshot, this.#clusterTimeElements, this.#identityElements];
    }
    if (since !== undefined) {
      this.#causal.writeBigUInt64LE(since, this.#afterAt);
      return [this.#causal, this.#clusterTimeElements, this.#identityElements];
    }
    if (!operationTime) return [this.#plain, this.#clusterTimeElements, this.#identityElements];
    this.#causal.writeUInt32LE(operationTime.i, this.#afterAt);
    this.#causal.writeUInt32LE(operationTime.t, this.#afterAt + 4);
    return [this.#causal, this.#clusterTimeElements, this.#identityElements];
  }
}
