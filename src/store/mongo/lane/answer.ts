import { MongoServerError, type ClientSession, type ClusterTime } from 'mongodb';
import { BSON, Timestamp, onDemand, type Document } from '../../values/bson.ts';
import { BSON_TYPE } from '../../values/bson-types.ts';
import type { Reply } from './find-way.ts';
import type { PointInTime } from '../../store.ts';
import { BODY, LaneBroken, documentOfMessage, type Message } from './message.ts';

/** The answer to a find: its rows in place in the slot, and the id of the cursor that is still open, or 0n. */
interface Answer extends Reply {
  readonly cursor: bigint;
}

/** Advances the session by the answer's times. Throws MongoServerError or LaneBroken, and then releases the slot. */
export function readAnswer({ slot, length }: Message, session: ClientSession): Answer {
  try {
    const document = documentOfMessage(slot.bytes(length));
    let asOf: PointInTime | undefined;
    let rows: { start: number; length: number; id: bigint } | null = null;
    for (const [type, nameAt, nameLength, at, size] of onDemand.parseToElements(document)) {
      const initial = document[nameAt];
      if (initial === 0x63 && nameLength === 6 && type === BSON_TYPE.document) {
        const cursor = readCursor(document.subarray(at, at + size)); // `cursor`
        rows = { ...cursor, start: BODY + at + cursor.start };
      } else if (initial === 0x6f && nameLength === 13 && type === BSON_TYPE.timestamp) {
        asOf = advanceOperationTime(session, document, at); // `operationTime`
      } else if (initial === 0x24 && nameLength === 12 && type === BSON_TYPE.document) {
        advanceClusterTime(session, document.subarray(at, at + size)); // `$clusterTime`
      }
    }
    if (!rows) throw failureOf(document);
    return { slot, start: rows.start, length: rows.length, cut: rows.id !== 0n, asOf, cursor: rows.id };
  } catch (error) {
    slot.release();
    throw error instanceof MongoServerError || error instanceof LaneBroken
      ? error
      : new LaneBroken(`the reply is no answer to a find: ${String(error)}`, { cause: error });
  }
}

/** The document of an answer without rows. Throws MongoServerError when refused. Always releases the slot. */
export function readDocument({ slot, length }: Message): Document {
  try {
    const document = BSON.deserialize(documentOfMessage(slot.bytes(length)).slice(), {
      promoteBuffers: false,
    });
    if (document.ok !== 1) throw new MongoServerError(document);
    return document;
  } finally {
    slot.release();
  }
}

function failureOf(document: Uint8Array): Error {
  const answer = BSON.deserialize(document.slice());
  return answer.ok === 1 ? new LaneBroken('the reply to a find has no cursor') : new MongoServerError(answer);
}

function advanceOperationTime(session: ClientSession, document: Uint8Array, at: number): PointInTime {
  const view = new DataView(document.buffer, document.byteOffset + at, 8);
  const time = view.getBigUint64(0, true);
  if (!isTime(session.operationTime, view, 0)) session.advanceOperationTime(new Timestamp(time));
  return time;
}

/** The first element is the time itself. The rest is the server's signature of it. */
function advanceClusterTime(session: ClientSession, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isTime(session.clusterTime?.clusterTime, view, 4 + 1 + 'clusterTime\0'.length)) return;
  const time = BSON.deserialize(bytes.slice(), { promoteValues: false, promoteBuffers: false });
  session.advanceClusterTime(time as ClusterTime);
}

/** Nearly always the time received is known already: the time of an idle server moves every 10 s. */
function isTime(known: Timestamp | undefined, view: DataView, at: number): boolean {
  return known?.i === view.getUint32(at, true) && known.t === view.getUint32(at + 4, true);
}

/** A reply's `cursor` document: where its rows are, in bytes from the document's start, and the cursor's id. */
interface Cursor {
  readonly start: number;
  readonly length: number;
  /** Not 0n when the server keeps the cursor open. */
  readonly id: bigint;
}

/** Parses a reply's `cursor` document. Throws TypeError when it is not one. */
function readCursor(cursor: Uint8Array): Cursor {
  let rows: { start: number; length: number } | null = null;
  let id: bigint | null = null;
  for (const [, nameAt, nameLength, at, length] of onDemand.parseToElements(cursor)) {
    if (nameLength === 10 && cursor[nameAt] === FIRST_LETTER_OF_BATCH)
      rows = { start: at + 4, length: length - 5 };
    if (nameLength === 2 && cursor[nameAt] === FIRST_LETTER_OF_ID) id = int64At(cursor, at);
  }
  if (!rows || id === null) throw new TypeError('a find was answered without firstBatch or id');
  return { ...rows, id };
}

/** Of `firstBatch` (10 letters) and `id` (2). A cursor's other fields are `ns` and `partialResultsReturned`. */
const FIRST_LETTER_OF_BATCH = 0x66;
const FIRST_LETTER_OF_ID = 0x69;

function int64At(bytes: Uint8Array, at: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset + at, 8).getBigInt64(0, true);
}
