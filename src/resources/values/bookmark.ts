import type { Bookmark } from '../../store/bookmark.ts';

/**
 * A bookmark `{PATH: value}` of a distinct value, as other bookmarks. The bytes of the value stay as they are, so a
 * value keeps its type and precision.
 */
const NULL_KEY = Buffer.from('\u000a_id\u0000', 'latin1');

/** `{PATH: value, _id: null}`: the form in which a cursor carries it. */
export function withKey(value: Bookmark): Bookmark {
  return documentOf(value.subarray(4, -1), NULL_KEY);
}

/** The bookmark that `withKey` was given. Null when it was not made by `withKey`. */
export function valueOf(place: Bookmark): Bookmark | null {
  if (!NULL_KEY.equals(place.subarray(-1 - NULL_KEY.length, -1))) return null;
  return documentOf(place.subarray(4, -1 - NULL_KEY.length));
}

/** `{_id: value}`. */
export function asKey(value: Bookmark): Bookmark {
  const nameEnd = value.indexOf(0, 5);
  return documentOf(value.subarray(4, 5), Buffer.from('_id'), value.subarray(nameEnd, -1));
}

function documentOf(...content: readonly Uint8Array[]): Bookmark {
  const bytes = Buffer.concat([Buffer.alloc(4), ...content, Buffer.alloc(1)]);
  bytes.writeInt32LE(bytes.length, 0);
  return new Uint8Array(bytes) as Bookmark;
}
