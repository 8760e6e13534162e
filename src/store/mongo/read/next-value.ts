import { isUtf8 } from 'node:buffer';
import { AppError } from '../../../base/errors.ts';
import { KEY, type Bookmark } from '../../bookmark.ts';
import { BSON_RANK, BSON_TYPE, rankOf } from '../../values/bson-types.ts';
import type { Equality, ValuesFrom } from '../../store.ts';
import type { Index } from '../../indexes.ts';
import { commandKey } from './bookmark-in-command.ts';
import type { Layouts } from '../collection/layouts.ts';
import type { IndexedPlan } from '../plan.ts';
import { conditionOf, rangeCondition, type Condition } from './predicates.ts';
import type { Reads } from './read.ts';
import { BRACKETS, isNaNValue } from './type-brackets.ts';

/** Values of these types are listed nowhere: no query can name them. In the order of BSON_RANK. */
const UNNAMEABLE: readonly number[] = [
  BSON_TYPE.minKey,
  BSON_TYPE.undefined,
  BSON_TYPE.regularExpression,
  BSON_TYPE.dbPointer,
  BSON_TYPE.maxKey,
];

/** After so many values of one type that no command can carry, a list goes on with the next type. */
const MOST_OMITTED = 100;

/** The first date of JavaScript. Milliseconds. */
const FIRST_DATE = -8.64e15;

/** A stretch of values that one condition finds: a comparison never leaves its type bracket. */
interface Stretch {
  readonly rank: number;
  readonly isNaN: boolean;
  readonly condition: Condition;
  readonly isNameable: boolean;
}

/** All stretches in BSON order. Those of NaN and of the numbers have one rank. */
const STRETCHES: readonly Stretch[] = [
  ...BRACKETS.map(({ types: [type], lowest, alone }) => ({
    rank: rankOf(type ?? BSON_TYPE.double),
    isNaN: Number.isNaN(lowest),
    condition: alone ? conditionOf(lowest) : { $gte: lowest },
    isNameable: true,
  })).filter(({ rank }) => !UNNAMEABLE.map(rankOf).includes(rank)),
  ...UNNAMEABLE.map((type) => ({
    rank: rankOf(type),
    isNaN: false,
    condition: { $type: type === BSON_TYPE.minKey ? -1 : type },
    isNameable: false,
  })),
].sort((a, b) => a.rank - b.rank);

/**
 * Finds the next value of an index's field: see Collection.nextValue. It looks on within the type bracket of `after`,
 * and then in the brackets above it. A value that no command can carry is passed over, since nothing could go on
 * behind it: to the next text that is UTF-8, to the dates that JavaScript has, and else to the next type. An answer
 * about a range alone is for the kinds of a field, which are known for seconds.
 */
export function nextValueIn(layouts: Layouts, reads: Pick<Reads, 'first'>) {
  return async (
    index: Index,
    equals: readonly Equality[],
    { after = null, range, onOmitted }: ValuesFrom,
    signal: AbortSignal,
  ): Promise<Bookmark | null> => {
    const next = index.keys[equals.length];
    if (!next) throw new TypeError(`${index.name} has no field behind these values`);
    const plan: IndexedPlan = { index, equals, sort: next.path, direction: next.sign };
    if (range) return reads.first(plan, rangeCondition(range), signal);
    for (const stretch of stretchesBehind(after, next.path)) {
      if (!stretch.isNameable && next.path === KEY) continue; // a clustered collection would be read whole
      let condition: Condition | null = stretch.condition;
      for (let omitted = 0; condition && omitted <= MOST_OMITTED; omitted++) {
        const found: Bookmark | null = await reads.first(plan, condition, signal);
        if (!found) break;
        if (stretch.isNameable && carried(found, next.path)) return found;
        onOmitted?.();
        condition = stretch.isNameable ? conditionBehind(found) : null;
      }
    }
    const [{ identity }] = await layouts.layoutFor(plan, signal);
    await layouts.confirm(index, identity, true, signal);
    return null;
  };
}

/** Those behind a value, the rest of its own first. Null: all. */
function stretchesBehind(after: Bookmark | null, path: string): readonly Stretch[] {
  if (!after) return STRETCHES;
  const value = carried(after, path);
  const rank = rankOf(after[4] ?? 0);
  const isNaN = isNaNValue(value?.value);
  const above = STRETCHES.filter((one) => one.rank > rank || (one.rank === rank && isNaN && !one.isNaN));
  const own = STRETCHES.find((one) => one.rank === rank && !one.isNaN);
  const isAlone = isNaN || rank === BSON_RANK.null || !own?.isNameable;
  const condition = isAlone ? null : value ? { $gt: value.value } : conditionBehind(after);
  return own && condition ? [{ ...own, condition }, ...above] : above;
}

/** The value of a bookmark `{PATH: value}` as a command carries it. Undefined when none can. */
function carried(bookmark: Bookmark, path: string): { readonly value: unknown } | undefined {
  try {
    return { value: (commandKey(bookmark) as Readonly<Record<string, unknown>>)[path] };
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** The condition of the values of one type behind a value that no command can carry. Null: those cannot be found. */
function conditionBehind(bookmark: Bookmark): Condition | null {
  const bytes = Buffer.from(bookmark.buffer, bookmark.byteOffset, bookmark.length);
  const valueAt = bytes.indexOf(0, 5) + 1;
  const type = bytes[4];
  if (type === BSON_TYPE.date)
    return bytes.readBigInt64LE(valueAt) < FIRST_DATE ? { $gte: new Date(FIRST_DATE) } : null;
  if (type !== BSON_TYPE.string && type !== BSON_TYPE.symbol) return null;
  const text = bytes.subarray(valueAt + 4, -2);
  if (isUtf8(text)) return { $gt: text.toString() };
  const above = textAbove(text);
  return above === null ? null : { $gte: above };
}

/** The first text in the order of bytes that is UTF-8 and above these, which are not. Null: there is none. */
export function textAbove(bytes: Uint8Array): string | null {
  let end = bytes.length;
  while (!isUtf8(bytes.subarray(0, end))) end--;
  const characters = Array.from(Buffer.from(bytes.subarray(0, end)).toString());
  for (let rest = bytes.subarray(end); ;) {
    const next = characterAbove(rest);
    if (next !== null) return [...characters, next].join('');
    const last = characters.pop();
    if (last === undefined) return null;
    rest = Buffer.from(last);
  }
}

/** Characters by number, without the surrogates, which have no bytes in UTF-8. */
const CHARACTERS = 0x110000 - 0x800;
const characterOf = (n: number) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800);

/** The first character whose bytes come after these. Null: there is none. */
function characterAbove(bytes: Uint8Array): string | null {
  let low = 0;
  let high = CHARACTERS;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Buffer.compare(Buffer.from(characterOf(middle)), bytes) > 0) high = middle;
    else low = middle + 1;
  }
  return low < CHARACTERS ? characterOf(low) : null;
}
