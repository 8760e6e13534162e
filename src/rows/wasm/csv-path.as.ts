// Where columns have their values when a selection applies, by the rules of the tests' item-json.ts (itemValues).
import { ARRAY, DOCUMENT, findNul, isNamedId, valueEnd } from "./bson.as";
import { Selection, isFieldShown, isKeyShown, isPartial, isPathOpen, saveView, showAll } from "./select.as";
import { MAX_DEPTH, TOO_DEEP, UNSOUND } from "./transcode.as";

export const HIDDEN = 0, MEMBERS = 1, WHOLE = 2;
/** What findPath returns when a row has nothing on the path. */
export const NOWHERE = 0;

@unmanaged export class Place {
  /** A list of one path (see select.as.ts). 0: the column is a name. */
  path: usize;
  /** A name: whether its value is shown whole, or only if it has members, or not at all. */
  shows: i32;
  /** A path: where the current row has its value. */
  at: usize;
  end: usize;
  /** How deep in the row the document with the value is (1: the row itself). */
  depth: usize;
  /** The view of the value: the first of six words. */
  view: u32;
}

export const PLACE_SIZE: i32 = offsetof<Place>("view") + 24;

// @ts-ignore: decorator
@inline function keepView(s: Selection, place: Place, depth: usize): void {
  place.depth = depth;
  saveView(s, depth + 1, changetype<usize>(place) + offsetof<Place>("view"));
}

/** Initializes the Place of the column with this name: what the policy leaves of it, in any row. */
export function findPolicy(s: Selection, place: Place, name: usize, length: usize): void {
  place.path = 0;
  if (length == 3 && isNamedId(name, 3)) {
    showAll(s, 1);
    place.shows = WHOLE;
  } else if (!isFieldShown(s, 1, DOCUMENT, name, length)) place.shows = HIDDEN;
  else place.shows = isPartial(s, 2) ? MEMBERS : WHOLE;
  keepView(s, place, 1);
}

/**
 * Finds the first value on the path of the Selection's `fields`, by the view of `depth`. Returns its type, NOWHERE or a
 * negative error. All of the document is examined, as item-json.ts does, so that neither overlooks damage.
 */
export function findPath(s: Selection, place: Place, o: usize, last: usize, depth: usize): i32 {
  let found = NOWHERE;
  while (o < last) {
    const type = <i32>load<u8>(o);
    const key = o + 1;
    const nul = findNul(key, last);
    if (nul == 0) return UNSOUND;
    const at = nul + 1;
    const end = valueEnd(type, at, last);
    if (end == 0) return UNSOUND;
    o = end;
    if (found != NOWHERE) continue;
    const size = nul - key;
    const isKey = depth == 1 && size == 3 && isNamedId(key, 3);
    if (!(isKey ? isKeyShown(s, type, key, size) : isFieldShown(s, depth, type, key, size))) continue;
    if (type == DOCUMENT && isPathOpen(s, depth + 1)) {
      if (depth == MAX_DEPTH) return TOO_DEEP;
      found = findPath(s, place, at + 4, end - 1, depth + 1);
      if (found < 0) return found;
    } else {
      found = type;
      place.at = at;
      place.end = end;
      keepView(s, place, depth);
    }
  }
  return o == last ? found : UNSOUND;
}
