import {
  BSONRegExp,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  UUID,
  type Document,
} from '../../../src/store/values/bson.ts';
import { compareValues } from '../../../src/store/values/order.ts';
import { SCALARS } from './values.ts';

/** A random number generator: each call returns a number from 0, inclusive, to 1, exclusive. */
export type Random = () => number;

/** A generator that gives the same numbers for the same seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function oneOf<T>(random: Random, among: readonly T[]): T {
  return among[below(random, among.length)] as T;
}

/** An index as another program may have created it: its fields and signs in order, and its options. */
export interface RandomIndex {
  readonly key: readonly (readonly [path: string, sign: number | 'hashed'])[];
  readonly options: Readonly<Record<string, unknown>>;
}

export interface RandomCollection {
  readonly documents: readonly Document[];
  readonly indexes: readonly RandomIndex[];
  readonly kind: 'plain' | 'clustered' | 'capped';
}

export const PATHS = ['a', 'b', 'n.x', 'n.y', 's'] as const;

/** A collection with values of all types, nulls, missing fields, nested paths, long texts and odd indexes. */
export function randomCollection(random: Random): RandomCollection {
  const ids = oneOf(random, ID_KINDS);
  const pools = new Map(PATHS.map((path) => [path, poolOf(random)]));
  const byId = Array.from({ length: 1 + below(random, 70) }, (_, n) => ids(random, n)).filter(
    (id, n, all) => all.findIndex((other) => compareValues(other, id) === 0) === n,
  );
  const documents = byId.map((_id) => documentOf(random, _id, pools));
  const indexes = Array.from({ length: 2 + below(random, 5) }, () => indexOf(random));
  const kind = oneOf(random, ['plain', 'plain', 'clustered', 'capped'] as const);
  return { documents, indexes, kind };
}

/** The value of a document at a path, as an index sees it: missing is null. */
export function valueAt(document: Document, path: string): unknown {
  let value: unknown = document;
  for (const name of path.split('.')) {
    const isNested =
      typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
    if (!isNested) return null;
    value = (value as Document)[name];
  }
  return value ?? null;
}

const ID_KINDS: readonly ((random: Random, n: number) => unknown)[] = [
  (_, n) => new Int32(n),
  (random) => new ObjectId(Array.from({ length: 24 }, () => '0123456789abcdef'[below(random, 16)]).join('')),
  (random, n) => ({ region: oneOf(random, ['eu', 'us']), n: new Int32(n) }),
  (random, n) =>
    oneOf(random, [new Int32(n), new Double(n + 0.5), `id${n}`, new Date(n), new Timestamp({ t: n, i: 1 })]),
  (random) => oneOf(random, IDS),
];

/** Values of all types: in the order of BSON, and further numbers of the same value or at the ends, and long texts. */
const VALUES: readonly unknown[] = [
  ...SCALARS,
  ...[NaN, -Infinity, Infinity, -0, 5, 5.5].map((value) => new Double(value)),
  ...['NaN', '5.0', '9007199254740992.5', '1E+400'].map((digits) => Decimal128.fromString(digits)),
  ...[new Int32(5), Long.fromNumber(5), new Double(9007199254740992)],
  ...['ab', 'é', '😀', 'z'.repeat(5_000), `${'z'.repeat(5_000)}y`],
  ...[new UUID('00112233-4455-6677-8899-aabbccddeeff'), new Timestamp({ t: 0xffffffff, i: 0xffffffff })],
  ...[new Date('2024-02-29T12:00:00Z'), { x: new Double(1), y: 'a' }],
];

/** Ids of every type that rows may have in both stores. Some are numbers of the same value and of other types. */
export const IDS: readonly unknown[] = VALUES.filter(
  (value) => !(value instanceof MinKey || value instanceof MaxKey || value instanceof BSONRegExp),
);

/** A few values, so that rows share them: of one type, of all types, or nearly all different numbers. */
function poolOf(random: Random): readonly unknown[] {
  const some = (from: readonly unknown[], count: number) =>
    Array.from({ length: count }, () => oneOf(random, from));
  const numbers = VALUES.filter(
    (value) => value instanceof Int32 || value instanceof Double || value instanceof Decimal128,
  );
  const texts = VALUES.filter((value) => typeof value === 'string');
  const pools = [
    () => some(VALUES, 12),
    () => VALUES,
    () => some(numbers, 6),
    () => some(texts, 4),
    () => Array.from({ length: 200 }, (_, n) => new Int32(n)),
    () => Array.from({ length: 5 }, (_, n) => new Date(n * 1e9)),
  ];
  return oneOf(random, pools)();
}

function documentOf(random: Random, _id: unknown, pools: ReadonlyMap<string, readonly unknown[]>): Document {
  const document: Document = { _id };
  for (const [path, pool] of pools) {
    if (random() < 0.12) continue; // missing
    const [name = '', inner] = path.split('.');
    const value = oneOf(random, pool);
    if (inner === undefined) document[name] = value;
    else if (document[name] === undefined && random() < 0.08) document[name] = 'no document';
    else if (typeof document[name] !== 'string')
      document[name] = { ...(document[name] as Document), [inner]: value };
  }
  return document;
}

/** Nearly always an index that plans can use, with any directions, further fields, or unique; else one they cannot. */
function indexOf(random: Random): RandomIndex {
  const sign = () => (random() < 0.6 ? 1 : -1);
  const paths = [...PATHS].sort(() => random() - 0.5);
  const equals = paths.slice(0, below(random, 3)).map((path) => [path, sign()] as const);
  const sort = random() < 0.75 ? paths.slice(3, 4) : [];
  const direction = sign();
  const ordered = sort.map((path) => [path, direction] as const);
  const further = random() < 0.25 ? [[paths[4] ?? 's', sign()] as const] : [];
  const dice = random();
  if (dice < 0.2 && equals.length + ordered.length > 0)
    return { key: [...equals, ...ordered], options: { unique: true } };
  const key = [...equals, ...ordered, ['_id', direction] as const, ...further];
  if (dice > 0.95) return { key: [['a', 'hashed']], options: {} };
  if (dice > 0.9) return { key, options: oneOf(random, ODD) };
  return { key, options: {} };
}

const ODD: readonly Readonly<Record<string, unknown>>[] = [
  { sparse: true },
  { hidden: true },
  { partialFilterExpression: { a: { $exists: true } } },
  { collation: { locale: 'de' } },
];
