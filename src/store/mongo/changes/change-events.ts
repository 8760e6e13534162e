import { elementsNamed, type BsonElement } from '../../values/bson-elements.ts';
import { BSON, type Binary, type Document } from '../../values/bson.ts';
import { BSON_TYPE } from '../../values/bson-types.ts';
import { KEY, type Bookmark, type PointInTime } from '../../bookmark.ts';
import { isUnseen, type ScopeFields } from '../../scope/predicate.ts';
import { rowsOf } from '../reply.ts';
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
  /** The fields of the row before the change that decide on scopes. Missing: there was none, or none was asked for. */
  readonly before?: Uint8Array;
  /** The readers of the scopes that were asked for do not see the change. */
  readonly isUnseen?: true;
}

/** The events of one reply, and the server's cursor. */
export interface EventReply {
  readonly events: readonly ChangeEvent[];
  /** The server has given every event before this place (`postBatchResumeToken`). */
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
 * The stages behind $changeStream: the events of these collections, and of those renamed to one of their names, which
 * they may replace. `invalidate` ends a stream. `fields`: events have what decides on scopes by these.
 */
export function stagesFor(
  collections: readonly string[],
  fields?: ScopeFields,
): readonly Readonly<Record<string, unknown>>[] {
  const named = { $in: collections };
  const ends = { operationType: { $in: ['dropDatabase', 'invalidate'] } };
  return [
    { $match: { $or: [{ 'ns.coll': named }, { 'to.coll': named }, ends] } },
    ...(fields ? [{ $set: { before: '$fullDocumentBeforeChange' } }] : []),
    { $project: { ...PROJECTION, ...(fields && projectionOf(fields)) } },
  ];
}

/** What decides whether a row was in a scope; and the whole rows where fields are hidden. */
function projectionOf({ where, hide }: ScopeFields): Readonly<Record<string, 1>> {
  // A path includes those below it, and a projection must not name both.
  const outer = where.filter((path) => !where.some((other) => path.startsWith(`${other}.`)));
  const paths = outer.length > 0 ? outer : [KEY];
  const values = paths.map((path) => `before.${path}`);
  const rows = hide.length > 0 ? ['fullDocumentBeforeChange', 'fullDocument'] : [];
  return Object.fromEntries([...values, ...rows].map((path) => [path, 1]));
}

const inUtf8 = (...names: readonly string[]) => names.map((name) => Buffer.from(name));
const OF_EVENT = inUtf8('_id', 'clusterTime', 'documentKey', 'ns', 'to', 'before');
const OF_CHANGE = inUtf8('fullDocumentBeforeChange', 'fullDocument');

/** The events of a reply to aggregate or getMore. `fields`: see `stagesFor`. Throws TypeError for any other reply. */
export function eventsOf(reply: Document, fields?: ScopeFields): EventReply {
  const { rows, id, cursor } = rowsOf(reply);
  return {
    events: rows.map((event) => readEvent(event, fields)),
    behind: placeBehind((cursor.postBatchResumeToken ?? {}) as Token),
    cursor: id,
  };
}

interface Token {
  readonly _data?: unknown;
  readonly _typeBits?: Binary;
}

function placeBehind({ _data, _typeBits }: Token): Place {
  return placeOfToken(_data, _typeBits?.buffer);
}

function readEvent(event: Uint8Array, fields: ScopeFields | undefined): ChangeEvent {
  const [token, time, key, namespace, to, before] = elementsNamed(event, OF_EVENT);
  if (!token || !time) throw new TypeError('an event came without a time');
  const names = [namespace, to].flatMap((element) => (element ? nameIn(valueOf(event, element)) : []));
  return {
    place: placeBehind(BSON.deserialize(valueOf(event, token))),
    time: viewOf(event, time).getBigUint64(0, true),
    collections: names.length > 0 ? names : null,
    // `documentKey` has become {_id}, which is what a bookmark is. The reply is large, so the key is copied.
    key: key ? (valueOf(event, key).slice() as Bookmark) : null,
    ...(before?.type === BSON_TYPE.document && { before: valueOf(event, before).slice() }),
    ...(fields && isUnseenIn(event, fields) && { isUnseen: true }),
  };
}

function isUnseenIn(event: Uint8Array, fields: ScopeFields): boolean {
  if (fields.hide.length === 0) return false;
  const [before, after] = elementsNamed(event, OF_CHANGE);
  if (before?.type !== BSON_TYPE.document || after?.type !== BSON_TYPE.document) return false;
  return isUnseen(valueOf(event, before), valueOf(event, after), fields);
}

/** The name in `{coll}`. None in `{}`, which stands for the whole database. */
function nameIn(namespace: Uint8Array): readonly string[] {
  const { coll } = BSON.deserialize(namespace);
  return typeof coll === 'string' ? [coll] : [];
}

function valueOf(document: Uint8Array, { valueAt, end }: BsonElement): Uint8Array {
  return document.subarray(valueAt, end);
}

function viewOf(document: Uint8Array, element: BsonElement): DataView {
  const { buffer, byteOffset, byteLength } = valueOf(document, element);
  return new DataView(buffer, byteOffset, byteLength);
}
