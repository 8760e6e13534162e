// What a selection leaves of a row. view.ts has the same rules, and tests check that both agree.
//
// A list of paths is a count (u32), then for each path its offset in the list and its length (u32 each), then the texts
// of the paths. It is sorted so that the paths below one field are neighbours. What is left of a list inside a document
// is therefore a range of its paths, and how many bytes of each the names down to there have used up.
import { ARRAY, DOCUMENT } from "./bson.as";

const DOT = 46;

/** `low` = `high`: the list has no more effect here, so everything is shown. */
@unmanaged class Range {
  low: u32;
  high: u32;
  used: u32;
}

/** What is selected in one document or array: the ranges of both lists. */
const VIEW_SIZE: usize = 2 * offsetof<Range>();

/** The views of all levels of the current row follow: view(s, 1) is that of the row itself. */
@unmanaged export class Selection {
  /** The list of the paths that were asked for. 0: all fields. */
  fields: usize;
  /** The list of the paths that are hidden (`hides`: 1), or of those that alone may be shown. 0: there is none. */
  policy: usize;
  hides: i32;
}

/** Room for the views of the row, of 180 levels below it, and of the values there. */
export const SELECTION_SIZE: i32 = <i32>offsetof<Selection>() + 183 * <i32>VIEW_SIZE;

// @ts-ignore: decorator
@inline function view(s: Selection, depth: usize): usize {
  return changetype<usize>(s) + offsetof<Selection>() + depth * VIEW_SIZE;
}

// @ts-ignore: decorator
@inline function fieldsAt(s: Selection, depth: usize): Range {
  return changetype<Range>(view(s, depth));
}

// @ts-ignore: decorator
@inline function policyAt(s: Selection, depth: usize): Range {
  return changetype<Range>(view(s, depth) + offsetof<Range>());
}

/** Initializes a Selection. The lists are already in place. */
export function openSelection(s: Selection, fields: usize, policy: usize, hides: i32): void {
  memory.fill(changetype<usize>(s), 0, SELECTION_SIZE);
  s.policy = policy;
  s.hides = hides;
  if (policy != 0) policyAt(s, 1).high = load<u32>(policy);
  setFields(s, fields);
}

export function setFields(s: Selection, fields: usize): void {
  s.fields = fields;
  if (fields != 0) fieldsAt(s, 1).high = load<u32>(fields);
}

/** Makes the view of the values at this depth one that shows everything. */
export function showAll(s: Selection, depth: usize): void {
  memory.fill(view(s, depth + 1), 0, VIEW_SIZE);
}

/** Whether the view of this depth leaves anything out. */
export function isRestricted(s: Selection, depth: usize): bool {
  return isActive(fieldsAt(s, depth)) || isActive(policyAt(s, depth));
}

/** Whether the list of fields still has an effect at this depth, so that the path of a column has not ended. */
export function isPathOpen(s: Selection, depth: usize): bool {
  return isActive(fieldsAt(s, depth));
}

/** Whether only members are shown at this depth, so that a value without members is not. */
export function isPartial(s: Selection, depth: usize): bool {
  return isActive(fieldsAt(s, depth)) || (s.hides == 0 && isActive(policyAt(s, depth)));
}

/** Copies the view of this depth to `to`, which has room for six words. */
export function saveView(s: Selection, depth: usize, to: usize): void {
  memory.copy(to, view(s, depth), VIEW_SIZE);
}

export function restoreView(s: Selection, depth: usize, from: usize): void {
  memory.copy(view(s, depth), from, VIEW_SIZE);
}

/** Whether a field is shown by the view of `depth`. The view of `depth + 1` is then that of its value. */
export function isFieldShown(s: Selection, depth: usize, type: i32, key: usize, length: usize): bool {
  if (!pick(s.fields, fieldsAt(s, depth), fieldsAt(s, depth + 1), key, length)) return false;
  const policy = policyAt(s, depth + 1);
  const isSpared = s.hides != 0
    ? spare(s.policy, policyAt(s, depth), policy, key, length)
    : pick(s.policy, policyAt(s, depth), policy, key, length);
  return isSpared && (isNested(type) || !isPartial(s, depth + 1));
}

/** As isFieldShown, for the key of a column's path in a row's `_id`, which no policy hides. */
export function isKeyShown(s: Selection, type: i32, key: usize, length: usize): bool {
  memory.fill(view(s, 2), 0, VIEW_SIZE);
  return pick(s.fields, fieldsAt(s, 1), fieldsAt(s, 2), key, length) && (isNested(type) || !isActive(fieldsAt(s, 2)));
}

/** As isFieldShown, for an element of an array. It has the view of its array. */
export function isElementShown(s: Selection, depth: usize, type: i32): bool {
  memory.copy(view(s, depth + 1), view(s, depth), VIEW_SIZE);
  return isNested(type) || !isPartial(s, depth);
}

// @ts-ignore: decorator
@inline function isActive(range: Range): bool {
  return range.low != range.high;
}

// @ts-ignore: decorator
@inline function isNested(type: i32): bool {
  return type == DOCUMENT || type == ARRAY;
}

/** Whether a list of shown paths shows something of the field with this key. `to` is then what is left below it. */
function pick(list: usize, from: Range, to: Range, key: usize, length: usize): bool {
  clear(to);
  if (!isActive(from)) return true;
  const used = <usize>from.used;
  const first = load<u8>(key);
  for (let i = from.low, high = from.high; i < high; i++) {
    const path = textOf(list, i) + used;
    const size = sizeOf(list, i) - used;
    if (load<u8>(path) != first || size < length || memory.compare(path, key, length) != 0) continue;
    if (size == length) {
      clear(to);
      return true;
    }
    if (load<u8>(path + length) == DOT) extend(to, i, used + length + 1);
  }
  return isActive(to);
}

/** Whether a list of hidden paths leaves something of the field with this key. `to` is what is left below it. */
function spare(list: usize, from: Range, to: Range, key: usize, length: usize): bool {
  clear(to);
  const used = <usize>from.used;
  const first = load<u8>(key);
  for (let i = from.low, high = from.high; i < high; i++) {
    const path = textOf(list, i) + used;
    if (load<u8>(path) != first) continue; // no path is empty, and the first byte of an empty key is its terminator
    const size = sizeOf(list, i) - used;
    if (memory.compare(path, key, min(size, length)) != 0) continue;
    if (size == length || (size < length && load<u8>(key + size) == DOT)) return false;
    if (size > length && load<u8>(path + length) == DOT) extend(to, i, used + length + 1);
  }
  return true;
}

// @ts-ignore: decorator
@inline function sizeOf(list: usize, i: u32): usize {
  return <usize>load<u32>(list + ((<usize>i) << 3), 8);
}

// @ts-ignore: decorator
@inline function textOf(list: usize, i: u32): usize {
  return list + <usize>load<u32>(list + ((<usize>i) << 3), 4);
}

// @ts-ignore: decorator
@inline function clear(range: Range): void {
  range.low = 0;
  range.high = 0;
}

// @ts-ignore: decorator
@inline function extend(range: Range, i: u32, used: usize): void {
  if (!isActive(range)) range.low = i;
  range.high = i + 1;
  range.used = <u32>used;
}
