// AssemblyScript, see module.as.ts.
//
// The machine reads BSON rows and writes JSON text. item-json.ts in test/support/rows describes the form, and tests
// check that both agree.
//
// One machine writes every row. It writes small things (a number, a date, a short key) whole, which takes at most
// MARGIN bytes. It writes long ones (strings, long keys, base64, spilled text) in pieces. When less than MARGIN is left
// of the output, it saves its few variables in a State and returns. The next call continues exactly there. So output is
// bounded whatever a row holds, and any number of passes interleave, each with its own State.
//
// What is selected: the names of top-level fields alone are a list of names (`fields`). Any other selection is a
// Selection (select.as.ts). Documents deeper than `watch` are written without a look at either.
//
// Reading: every length is checked against the end of its document before anything after it is read. 16 bytes are
// loaded at once only where they lie inside the batch. Strings and keys end in a NUL that was checked before. Every
// loop treats NUL as a special character, so none of them runs past its text.
//
// The key is written first, as `id`. When the row has its own field `id`, the text since the row's begin moves by one
// byte, and the key becomes `_id`. That is possible only while the begin is in this call's output. So a call that ends
// inside a row it began looks through the row's other names.
import {
  ARRAY, BINARY, BOOLEAN, DATE, DECIMAL, DOCUMENT, DOUBLE, INT32, INT64, NULL, OBJECT_ID, STRING, UNDEFINED,
  findId, findNul, hasOwnId, isAmong, isNamedId, valueEnd,
} from "./bson.as";
import { base64Reached, writeBase64, writeObjectId, writeUuid } from "./binary.as";
import { writeDate } from "./dates.as";
import { writeDecimal128, writeDouble, writeI64, writeNull } from "./numbers.as";
import { Selection, isElementShown, isFieldShown, isRestricted, openSelection, showAll } from "./select.as";
import { notPlainAscii, textReached, writeText } from "./text.as";

/** Keeps the Extended JSON of the value of BSON type `type` at [at, end) for `hostSpilled`. Returns its length. */
@external("host", "extended") declare function hostExtended(type: i32, at: usize, end: usize): usize;
/** Copies the next `length` bytes of the kept text to `out`. */
@external("host", "spilled") declare function hostSpilled(out: usize, length: usize): void;

/** The deepest nesting, with the row itself as level 1: the most that MongoDB stores (6.0.5 refuses 181). */
export const MAX_DEPTH: usize = 180;
/**
 * More than a step writes, also what vector stores write beyond their text: a comma, a quoted key of 15 bytes and a
 * colon (19), and the longest value (48). A text that has to stop has passed `stop` by at most 16.
 */
export const MARGIN: usize = 96;

/** The state of a pass between two calls. */
@unmanaged export class State {
  /** The next byte of input, and the end of the rows. */
  at: usize;
  end: usize;
  /** The level of the current document (0: between rows), and its terminator. */
  depth: usize;
  last: usize;
  /** `array`: 1 in an array. `comma`: 1 when an element of this document was written before. */
  array: usize;
  comma: usize;
  /** The value's type while its key is written or under way, otherwise 0. */
  type: i32;
  /** The piece under way and where it ends. For SPILL, `pieceEnd` is the number of bytes left. */
  piece: i32;
  pieceEnd: usize;
  /** Where to continue after an `_id` that was not the first element, otherwise 0. */
  resume: usize;
  /** `commas`: 1 puts a comma before each row but the first, 0 puts LF after each. `begun`: a row was written. */
  commas: i32;
  begun: i32;
  /** What to show beside the id: top-level fields by name (see isAmong), or a Selection, or 0 for all. */
  filter: usize;
  isSelection: i32;
  /** The deepest level on the way to the current document of which something is left out, at least 1. */
  watch: usize;
  /** The number of rows of this batch that are written whole. */
  rows: i32;
  /** The depth at which writing ends: 0 for rows, that of its document for a single value. */
  floor: usize;
  /** `keyAt`: where the row begins in this output while its key may become `_id`, or 0. `first`: its first element. */
  keyAt: usize;
  first: usize;
  /** MAX_DEPTH words follow: `last` of the enclosing documents, with the top bit set for arrays. */
  stack: u32;
}

export const STATE_SIZE: i32 = offsetof<State>("stack") + <i32>MAX_DEPTH * 4;

/** The address of the stack's word for `depth`. */
// @ts-ignore: decorator
@inline function level(s: State, depth: usize): usize {
  return changetype<usize>(s) + offsetof<State>("stack") + (depth << 2);
}

export const NONE = 0, KEY = 1, TEXT = 2, BASE64 = 3, SPILL = 4;

// What `run` returns when a row is not sound. transcoder.ts has the messages.
export const UNSOUND = -1, TOO_DEEP = -2, NO_ID = -3;

/** Initializes the State of a new encoder. `commas`: see State. `names`: the top-level fields to show, or 0 for all. */
export function open(s: State, commas: i32, names: usize): void {
  memory.fill(changetype<usize>(s), 0, STATE_SIZE);
  s.commas = commas;
  s.filter = names;
}

export function select(s: State, selection: usize, fields: usize, policy: usize, hides: i32): void {
  openSelection(changetype<Selection>(selection), fields, policy, hides);
  useSelection(s, selection);
}

/** Makes a Selection that is open already that of a State. */
export function useSelection(s: State, selection: usize): void {
  s.filter = selection;
  s.isSelection = 1;
}

/** Whether a field is shown, in a document that is not deeper than `watch`. */
// @ts-ignore: decorator
@inline function isShown<Filter>(s: State, depth: usize, type: i32, key: usize, size: usize): bool {
  if (isReference<Filter>()) return isFieldShown(selectionOf(s), depth, type, key, size);
  return s.filter == 0 || isAmong(s.filter, key, size);
}

/** The Selection of a State that has one. */
// @ts-ignore: decorator
@inline function selectionOf(s: State): Selection {
  return changetype<Selection>(s.filter);
}

/** Starts with the rows at [at, end). */
export function begin(s: State, at: usize, end: usize): void {
  s.at = at;
  s.end = end;
  s.depth = 0;
  s.type = 0;
  s.piece = NONE;
  s.resume = 0;
  s.rows = 0;
  s.floor = 0;
  s.watch = 1;
}

/**
 * Starts with the value of this type at [at, end), `depth` levels deep (1: the row), of a row whose terminator is at
 * `last`. It alone is written. A Selection's view of `depth + 1` is that of the value.
 */
export function beginValue(s: State, type: i32, at: usize, end: usize, last: usize, depth: usize): void {
  begin(s, at, end);
  s.type = type;
  s.last = last;
  s.depth = depth;
  s.floor = depth;
  s.watch = depth;
  s.comma = 0;
}

export function isValueWritten(s: State): bool {
  return s.depth == s.floor && s.type == 0 && s.piece == NONE;
}

export function finished(s: State): bool {
  return s.depth == 0 && s.at == s.end;
}

/** Makes the batch end with the row under way. Returns where that is. */
export function endHere(s: State): usize {
  if (s.depth == 0) s.end = s.at;
  else if (s.depth == 1) s.end = s.last + 1;
  else s.end = <usize>(load<u32>(level(s, 1)) & 0x7fffffff) + 1;
  return s.end;
}

/** The number of rows of this batch written so far, for error messages. */
export function rowsDone(s: State): i32 {
  return s.rows;
}

/** Writes JSON text to [out, limit), at least 256 bytes, and nothing after it. Returns its length or a negative error. */
export function run(s: State, out: usize, limit: usize): i32 {
  const written = step(s, out, limit);
  const isBegun = written > 0 && s.depth != 0 && s.keyAt != 0;
  if (!isBegun || !hasOwnId(s.first, s.first - 5 + <usize>load<u32>(s.first - 4))) return written;
  return <i32>(nameKey(s, out + written) - out);
}

/** As `run`, but when it ends inside a row that it began, the name of the key is still open. */
export function step(s: State, out: usize, limit: usize): i32 {
  return s.isSelection != 0 ? write<Selection>(s, out, limit) : write<usize>(s, out, limit);
}

/**
 * `step`, compiled twice, because a look for a Selection in each document, array and key costs 5 % of the time of all
 * other rows. `Filter` says what `s.filter` is: a Selection (a reference), or the address of names (usize).
 */
function write<Filter>(s: State, out: usize, limit: usize): i32 {
  const stop = limit - MARGIN;
  const end = s.end;
  let p = out;
  let o = s.at;
  let depth = s.depth;
  let last = s.last;
  let array = s.array;
  let comma = s.comma;
  let type = s.type;
  let piece = s.piece;
  let pieceEnd = s.pieceEnd;
  let watch: usize = isReference<Filter>() ? s.watch : 1;
  const floor = s.floor;
  s.keyAt = 0;

  while (p <= stop) {
    if (type == 0 && piece == NONE) {
      if (depth == floor) {
        if (floor != 0) break;
        // Between rows: an element of the array (0x03, a name that is ignored, NUL), then the document.
        if (o == end) break;
        if (load<u8>(o) != DOCUMENT) return UNSOUND;
        o = findNul(o + 1, end) + 1;
        if (o == 1) return UNSOUND;
        const next = valueEnd(DOCUMENT, o, end);
        if (next == 0) return UNSOUND;
        last = next - 1;
        o += 4;
        s.first = o;
        const id = findId(o, last);
        if (id == 0) return NO_ID;
        s.resume = id == o ? 0 : o;
        type = load<u8>(id);
        o = id + 5;
        store<u8>(p, 44);
        p += s.commas & s.begun;
        s.begun = 1;
        s.keyAt = p;
        store<u64>(p, 0x3a226469227b); // {"id":
        p += 6;
        depth = 1;
        array = 0;
        if (isReference<Filter>()) showAll(selectionOf(s), 1);
      } else {
        if (depth == 1 && s.resume != 0) {
          o = s.resume;
          s.resume = 0;
        }
        type = load<u8>(o);
        if (type == 0) {
          if (o != last) return UNSOUND;
          o++;
          store<u8>(p++, array ? 93 : 125);
          depth--;
          if (depth == 0) {
            s.rows++;
            store<u8>(p, 10);
            p += 1 - s.commas;
          } else {
            const parent = load<u32>(level(s, depth));
            last = parent & 0x7fffffff;
            array = parent >> 31;
            comma = 1;
            if (isReference<Filter>() && watch > depth) watch = depth;
          }
          continue;
        }
        o++;
        store<u8>(p, 44);
        if (array) {
          o = findNul(o, last) + 1;
          if (o == 1) return UNSOUND;
          if (isReference<Filter>() && depth <= watch && !isElementShown(selectionOf(s), depth, type)) {
            o = valueEnd(type, o, last);
            if (o == 0) return UNSOUND;
            type = 0;
            continue;
          }
          p += comma;
        } else {
          // A short and plain key is written here. Other keys are pieces.
          let length: usize = 16;
          if (o + 16 <= end) {
            const v = v128.load(o);
            v128.store(p + comma + 1, v);
            length = ctz(notPlainAscii(v) | 0x10000);
          }
          const isWhole = length < 16 && load<u8>(o + length) == 0;
          const nul = isWhole ? o + length : findNul(o, last);
          if (nul == 0 || nul >= last) return UNSOUND;
          const size = nul - o;
          const isTop = depth == 1;
          if ((isReference<Filter>() ? depth <= watch : isTop) && ((isTop && isNamedId(o, size)) || !isShown<Filter>(s, depth, type, o, size))) {
            const isOwn = isTop && size == 2 && isNamedId(o, 2);
            if (isOwn && s.keyAt != 0) {
              p = nameKey(s, p);
              store<u8>(p, 44);
              store<u16>(p + comma, 0x6469, 1);
            }
            if (!isOwn || !isShown<Filter>(s, depth, type, o, 2)) {
              o = valueEnd(type, nul + 1, last);
              if (o == 0) return UNSOUND;
              type = 0;
              continue;
            }
          }
          p += comma;
          store<u8>(p++, 34);
          if (isWhole) {
            p += length;
            store<u16>(p, 0x3a22);
            p += 2;
            o = nul + 1;
          } else {
            piece = KEY;
            pieceEnd = nul;
          }
        }
      }
    }

    if (piece == NONE) {
      const next = valueEnd(type, o, last);
      if (next == 0) return UNSOUND;
      comma = 1;
      switch (type) {
        case STRING:
          store<u8>(p++, 34);
          o += 4;
          piece = TEXT;
          pieceEnd = next - 1;
          break;
        case DOUBLE: p = writeDouble(load<f64>(o), p); o = next; break;
        case INT32: p = writeI64(<i64>load<i32>(o), p); o = next; break;
        case INT64: p = writeI64(load<i64>(o), p); o = next; break;
        case DECIMAL: p = writeDecimal128(o, p); o = next; break;
        case OBJECT_ID: p = writeObjectId(o, p); o = next; break;
        case DATE: p = writeDate(load<i64>(o), p); o = next; break;
        case NULL: case UNDEFINED: p = writeNull(p); o = next; break;
        case BOOLEAN: {
          const value = load<u8>(o);
          if (value > 1) return UNSOUND;
          store<u64>(p, value ? 0x65757274 : 0x65736c6166); // true, false
          p += 5 - value;
          o = next;
          break;
        }
        case DOCUMENT: case ARRAY:
          if (depth == MAX_DEPTH) return TOO_DEEP;
          store<u32>(level(s, depth), <u32>last | (<u32>array << 31));
          if (isReference<Filter>() && depth <= watch && isRestricted(selectionOf(s), depth + 1)) watch = depth + 1;
          depth++;
          array = <usize>(type == ARRAY);
          store<u8>(p++, array ? 91 : 123);
          last = next - 1;
          o += 4;
          comma = 0;
          break;
        case BINARY: {
          const subtype = load<u8>(o, 4);
          if (subtype == 4 && next - o == 21) {
            p = writeUuid(o + 5, p);
            o = next;
          } else {
            store<u8>(p++, 34);
            o += subtype == 2 ? 9 : 5; // the old subtype repeats the length inside the value
            piece = BASE64;
            pieceEnd = next;
          }
          break;
        }
        default: // Timestamp, regular expression, code, symbol, pointer, MinKey, MaxKey
          piece = SPILL;
          pieceEnd = hostExtended(type, o, next);
          o = next;
      }
      type = 0;
      if (piece == NONE) continue;
    }

    if (piece <= TEXT) {
      p = writeText(o, pieceEnd, p, stop, end);
      o = textReached;
      if (o != pieceEnd) break;
      o++;
      store<u16>(p, 0x3a22);
      p += piece == KEY ? 2 : 1;
    } else if (piece == BASE64) {
      p = writeBase64(o, pieceEnd, p, stop);
      o = base64Reached;
      if (o != pieceEnd) break;
      store<u8>(p++, 34);
    } else {
      const length = min(pieceEnd, limit - 1 - p); // one byte is left for nameKey
      hostSpilled(p, length);
      p += length;
      pieceEnd -= length;
      if (pieceEnd != 0) break;
    }
    piece = NONE;
  }

  s.at = o;
  s.depth = depth;
  if (isReference<Filter>()) s.watch = watch;
  s.last = last;
  s.array = array;
  s.comma = comma;
  s.type = type;
  s.piece = piece;
  s.pieceEnd = pieceEnd;
  return <i32>(p - out);
}

/** Changes the key's name from `id` to `_id`: what follows, up to `p`, moves by one byte. Returns the new `p`. */
function nameKey(s: State, p: usize): usize {
  const name = s.keyAt + 2; // after {"
  s.keyAt = 0;
  memory.copy(name + 1, name, p - name);
  store<u8>(name, 95);
  return p + 1;
}
