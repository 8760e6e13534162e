import { headOf, isKeyValue, keyIn, MAX_CURSOR_BYTES } from './cursor.ts';
import { cursorMismatch, encodeToken, refusal, type Token, type TokenHead } from './token.ts';
import { KEY, type Bookmark, type Identity } from '../../store/bookmark.ts';
import type { ChangeFeed, FeedPlace } from '../../store/change-feed.ts';
import type { Collection, Plan } from '../../store/store.ts';
import { AppError } from '../../base/errors.ts';

/**
 * Cursor of a feed: a place in the history of a set, and how far a walk through the set has come. The time of its token
 * (see token.ts) is the one that the place has seen, and the body is
 *
 *     walk (1 byte, see WALKS) | length (2) and token of the store's place | bookmark (if PLACED)
 *
 * The server keeps nothing. A store may take the place of another collection for its own, so the cursor carries the
 * collection's whole identity.
 */
const WALKS = { over: 0, begins: 1, placed: 2 } as const;
const TOKEN_AT = 3;

/** How far a walk in order of id has come: to the row of a bookmark, null: it has no row yet, `over`: to the end. */
export type WalkPlace = Bookmark | null | 'over';

export interface FeedCursor {
  readonly place: FeedPlace;
  readonly walk: WalkPlace;
  readonly identity: Identity | undefined;
}

/** The order, the index and the range of ids of a plan do not matter to changes. */
function headIn(collection: string, { equals, among }: Plan): TokenHead {
  return headOf(collection, { sort: KEY, direction: 1, ...(equals && { equals }), ...(among && { among }) });
}

/** The cursor as text. Undefined: it is longer than this server takes, since token and bookmark may hold long ids. */
export function encodeFeedCursor(
  collection: string,
  plan: Plan,
  { place, walk, identity }: FeedCursor,
): string | undefined {
  const isPlaced = walk !== null && walk !== 'over';
  if (place.token.length + (isPlaced ? walk.length : 0) > MAX_CURSOR_BYTES) return undefined;
  const start = Buffer.alloc(TOKEN_AT);
  start[0] = isPlaced ? WALKS.placed : walk === null ? WALKS.begins : WALKS.over;
  start.writeUInt16LE(place.token.length, 1);
  const head = {
    ...headIn(collection, plan),
    ...(place.seen !== undefined && { since: place.seen }),
    ...(identity !== undefined && { identity }),
  };
  const cursor = encodeToken('feed', head, start, place.token, ...(isPlaced ? [walk] : []));
  return cursor.length <= MAX_CURSOR_BYTES ? cursor : undefined;
}

/** What a cursor says. AppError `cursor-mismatch` for another collection or filter, `invalid-cursor` for a wrong body. */
export function feedPlaceOf(cursor: Token, collection: string, plan: Plan): FeedCursor {
  const { body, since: seen, identity } = cursor;
  if (cursor.fingerprint !== headIn(collection, plan).fingerprint)
    throw cursorMismatch(
      'The cursor belongs to another collection or filter. Repeat those of the request that it came from.',
      cursor.parameter,
    );
  const end = body.length < TOKEN_AT ? Infinity : TOKEN_AT + body.readUInt16LE(1);
  if (body.length < end) throw refusal(cursor, 'it is too short');
  const [walk = 0] = body;
  if (walk > WALKS.placed || cursor.at !== undefined) throw refusal(cursor, 'its form is unknown');
  if (walk !== WALKS.placed && body.length > end) throw refusal(cursor, 'it is too long');
  return {
    place: { token: new Uint8Array(body.subarray(TOKEN_AT, end)), ...(seen !== undefined && { seen }) },
    walk: walk === WALKS.over ? 'over' : walk === WALKS.begins ? null : idIn(body.subarray(end), cursor),
    identity,
  };
}

/** A forged cursor may carry a sound checksum with any content. Only the bookmark of an id passes. */
function idIn(bytes: Uint8Array, cursor: Token): Bookmark {
  const bookmark = new Uint8Array(bytes) as Bookmark;
  const key = keyIn(bookmark, cursor);
  if (Object.keys(key).join() === KEY && isKeyValue(key._id)) return bookmark;
  throw refusal(cursor, 'its key is not an id');
}

/**
 * The place at which a plan's rows are about to be read, and the collection that they are of. The place comes first: it looks
 * again when the collection was replaced. When that happens between the two, a cursor of them is void and not wrong: the end
 * of the old collection follows its place.
 */
export async function placeBefore(
  plan: Pick<Plan, 'at' | 'identity'>,
  feed: ChangeFeed,
  rows: Pick<Collection, 'describe'>,
  signal: AbortSignal,
): Promise<Pick<FeedCursor, 'place' | 'identity'>> {
  const place = plan.at === undefined ? await feed.now(signal) : feed.at(plan.at);
  return { place, identity: plan.identity ?? (await rows.describe(signal)).identity };
}

/** The header that says from where the changes of a set follow. */
export const CHANGES_HEADER = 'changes-from';

/** A place in the history of a set before it was read. */
export interface ChangesStart {
  /** As clients carry it. */
  readonly cursor: string;
  /** What a plan needs so that its reads see every change before the place. */
  readonly bounds: Pick<Plan, 'since' | 'identity'>;
}

export function headersOf(start: ChangesStart | null): Readonly<Record<string, string>> {
  return start ? { [CHANGES_HEADER]: start.cursor } : {};
}

/** Why a set has no changes: the store, or what a key opens of it. */
const WITHOUT: readonly string[] = ['changes-unsupported', 'forbidden'];

/** The place from which a set's changes follow, before it is read. Null: the store has none, or the set has a range. */
export async function changesFrom(
  { name, rows }: { readonly name: string; readonly rows: Pick<Collection, 'changes' | 'describe'> },
  plan: Plan,
  signal: AbortSignal,
): Promise<ChangesStart | null> {
  const feed = rows.changes;
  if (!feed || plan.range) return null;
  try {
    const { place, identity } = await placeBefore(plan, feed, rows, signal);
    const cursor = encodeFeedCursor(name, plan, { place, walk: 'over', identity });
    if (cursor === undefined) return null;
    const since = plan.at === undefined && place.seen !== undefined && { since: place.seen };
    return { cursor, bounds: { ...(identity !== undefined && { identity }), ...since } };
  } catch (error) {
    if (error instanceof AppError && WITHOUT.includes(error.code)) return null;
    throw error;
  }
}
