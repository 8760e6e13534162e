import type { ClientSession } from 'mongodb';
import { BSON, Timestamp } from '../../bson.ts';
import type { Document } from '../../bson.ts';

const NO_BYTES: Uint8Array = new Uint8Array(0);
const TIME_NAME = 'afterClusterTime\0';

/** A BSON document without its size and its NUL. */
export function elementsOf(document: Document): Uint8Array {
  return BSON.serialize(document, { ignoreUndefined: false }).subarray(4, -1);
}

/**
 * What every find ends with: concern, time limit, session, read preference, database, and the causal session's times.
 * Serialized once; the times stand in the session alone, which the driver and the lane both read and advance.
 */
export class CommandTail {
  readonly #session: ClientSession;
  readonly #plain: Uint8Array;
  readonly #causal: Buffer;
  readonly #timeAt: number;
  #clusterTime: unknown = null;
  #clusterTimeElements = NO_BYTES;

  constructor(session: ClientSession, rest: Document) {
    this.#session = session;
    const readConcern = { level: 'majority' };
    const afterClusterTime = new Timestamp(0n);
    this.#plain = elementsOf({ readConcern, lsid: session.id, ...rest });
    const causal = elementsOf({
      readConcern: { ...readConcern, afterClusterTime },
      lsid: session.id,
      ...rest,
    });
    this.#causal = Buffer.from(causal);
    this.#timeAt = this.#causal.indexOf(TIME_NAME) + TIME_NAME.length;
  }

  /** The elements, valid until the next call. */
  elements(): readonly [Uint8Array, Uint8Array] {
    const { operationTime, clusterTime } = this.#session;
    if (clusterTime !== this.#clusterTime) {
      this.#clusterTime = clusterTime;
      this.#clusterTimeElements = clusterTime ? elementsOf({ $clusterTime: clusterTime }) : NO_BYTES;
    }
    if (!operationTime) return [this.#plain, this.#clusterTimeElements];
    this.#causal.writeUInt32LE(operationTime.i, this.#timeAt);
    this.#causal.writeUInt32LE(operationTime.t, this.#timeAt + 4);
    return [this.#causal, this.#clusterTimeElements];
  }
}
