import { elementsNamed, type BsonElement } from '../../bson-elements.ts';
import { BSON } from '../../bson.ts';
import { BSON_TYPE } from '../../bson-types.ts';
import type { Bookmark, PointInTime } from '../../bookmark.ts';
import { documentAt, endOfDocument } from '../../bson-array.ts';
import { placeOfToken, type Place } from './place.ts';

/** A change of a row, or the end of collections. */
export interface ChangeEvent {
  /** The place behind the event. */
  readonly place: Place;
  readonly time: PointInTime;
  /** The collections that changed. Null: all of the database. */
  readonly collections: readonly string[] | null;
  /** The bookmark `{_id}` of the row. Null: the collections were dropped or renamed, or replaced by another one. */
  readonly key: Bookmark | null;
  /** The row before the change, with the fields that were asked for. Missing: there was none, or none was asked for. */
  readonly before?: Uint8Array;
}

/** The events of one reply, and the server's cursor. */
export interface EventReply {
  readonly events: readonly ChangeEvent[];
  /** The server has told every event before this place (`postBatchResumeToken`). */
  readonly behind: Place;
  /** 0n when the server has closed the cursor. */
  readonly cursor: bigint;
}

/** Keys of rows only. `_id` must stay: it is the resume token. */
const PROJECTION = {
  operationType: 1,
  clusterTime: 1,
  'ns.coll': 1,
  'to.coll': 1,
  'documentKey._id': 1,
} as const;

/**
 * The stages that follow $changeStream: the events of these collections. When a collection is renamed to one of these
 * names, it may replace that one. `invalidate` ends a stream. `before`: the paths that rows before their change show.
 */
export function stagesFor(
  collections: readonly string[],
  before: readonly string[] = [],
): readonly Readonly<Record<string, unknown>>[] {
  const named = { $in: collections };
  const ends = { operationType: { $in: ['dropDatabase', 'invalidate'] } };
  return [
    { $match: { $or: [{ 'ns.coll': named }, { 'to.coll': named }, ends] } },
    { $project: { ...PROJECTION, ...ofBefore(before) } },
  ];
}

/** A path includes those below it, and a projection must not name both. */
function ofBefore(paths: readonly string[]): Readonly<Record<string, 1>> {
  const outer = paths.filter((path) => !paths.some((other) => path.startsWith(`${other}.`)));
  return Object.fromEntries(outer.map((path) => [`fullDocumentBeforeChange.${path}`, 1]));
}

const inUtf8 = (...names: readonly string[]) => names.map((name) => Buffer.from(name));
const OF_CURSOR = inUtf8('firstBatch', 'nextBatch', 'postBatchResumeToken', 'id');
const OF_EVENT = inUtf8('_id', 'clusterTime', 'documentKey', 'ns', 'to', 'fullDocumentBeforeChange');
const OF_TOKEN = inUtf8('_data', '_typeBits');
const OF_NAMESPACE = inUtf8('coll');

/** Reads the `cursor` document of a reply to aggregate or getMore. Throws TypeError when it is not one. */
export function readEvents(cursor: Uint8Array): EventReply {
  const [first, next, behind, id] = elementsNamed(cursor, OF_CURSOR);
  const batch = first ?? next;
  if (!batch || !behind || !id) throw new TypeError('a change stream was answered without events or token');
  const rows = cursor.subarray(batch.valueAt + 4, batch.end - 1); // between the array's size and NUL
  const events: ChangeEvent[] = [];
  for (let row = 0; row < rows.length;) {
    const document = documentAt(rows, row);
    row = endOfDocument(rows, document);
    events.push(readEvent(rows.subarray(document, row)));
  }
  return {
    events,
    behind: readToken(valueOf(cursor, behind)),
    cursor: viewOf(cursor, id).getBigInt64(0, true),
  };
}

function readEvent(event: Uint8Array): ChangeEvent {
  const [token, time, key, namespace, to, before] = elementsNamed(event, OF_EVENT);
  if (!token || !time) throw new TypeError('an event came without a time');
  const names = [namespace, to].flatMap((element) => (element ? nameIn(valueOf(event, element)) : []));
  return {
    place: readToken(valueOf(event, token)),
    time: viewOf(event, time).getBigUint64(0, true),
    collections: names.length > 0 ? names : null,
    // `documentKey` has become {_id}, which is what a bookmark is. The reply is large, so the key is copied.
    key: key ? (valueOf(event, key).slice() as Bookmark) : null,
    ...(before?.type === BSON_TYPE.document && { before: valueOf(event, before).slice() }),
  };
}

function readToken(token: Uint8Array): Place {
  const [data, bits] = elementsNamed(token, OF_TOKEN);
  if (data?.type !== BSON_TYPE.string) throw new TypeError('a resume token came without data');
  const hex = Buffer.from(token.subarray(data.valueAt + 4, data.end - 1)).toString('latin1');
  // A binary: its size (4 bytes), the subtype, the bytes.
  return placeOfToken(hex, bits && token.slice(bits.valueAt + 5, bits.end));
}

/** The name in `{coll}`. None in `{}`, which stands for the whole database. */
function nameIn(namespace: Uint8Array): readonly string[] {
  const [name] = elementsNamed(namespace, OF_NAMESPACE);
  return name ? [String(BSON.deserialize(namespace.slice()).coll)] : [];
}

function valueOf(document: Uint8Array, { valueAt, end }: BsonElement): Uint8Array {
  return document.subarray(valueAt, end);
}

function viewOf(document: Uint8Array, element: BsonElement): DataView {
  const { buffer, byteOffset, byteLength } = valueOf(document, element);
  return new DataView(buffer, byteOffset, byteLength);
}
