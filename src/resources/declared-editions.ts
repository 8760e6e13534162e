import { DURATION, DURATION_WORDS, milliseconds } from '../base/duration.ts';
import type { BodyFault } from '../base/errors.ts';
import { object, Type, wordOf, type Static } from '../base/schema.ts';

const SIZE = '^[1-9]\\d{0,5} ?(KiB|MiB)$';
const MIB = 2 ** 20;

/** The times between editions, in milliseconds, and the sizes of chunks, in bytes, that can be declared. */
const LEAST_MS = 1_000;
const MOST_MS = 7 * 24 * 3_600_000;
const LEAST_BYTES = 2 ** 14;
const MOST_BYTES = 16 * MIB;

/** The formats of chunks that can be declared. */
const FORMATS = ['ndjson.gz', 'ndjson.br', 'ndjson', 'parquet'] as const;

/** The member `editions` of a resource. */
export const EDITIONS_MEMBER = object(
  'the editions of the resource: an object with every, keep, formats and chunk',
  {
    every: Type.Optional(
      Type.String({
        pattern: DURATION,
        description: `the time between editions: ${DURATION_WORDS}, from 1 s to 168 h; 5 min without it`,
      }),
    ),
    keep: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description:
          'how many editions are kept, the newest included: an integer from 1 to 100; 3 without it',
      }),
    ),
    formats: Type.Optional(
      Type.Array(wordOf(FORMATS), {
        minItems: 1,
        uniqueItems: true,
        description: 'the formats of chunks, the first one for readers of rows; ndjson.gz without it',
      }),
    ),
    chunk: Type.Optional(
      Type.String({
        pattern: SIZE,
        description:
          'the size of chunks as NDJSON: a size such as "256 KiB" or "1 MiB", from 16 KiB to 16 MiB; 1 MiB without it',
      }),
    ),
  },
);

export type EditionsMember = Static<typeof EDITIONS_MEMBER>;

/** What a resource declares of its editions. */
interface DeclaredEditions {
  readonly everyMs: number;
  readonly keep: number;
  readonly formats: readonly (typeof FORMATS)[number][];
  /** The target of the size of chunks, in bytes of NDJSON. */
  readonly target: number;
}

/** A member, with defaults in place of what it lacks. */
export function declaredEditions(member: EditionsMember): DeclaredEditions {
  const { every = '5 min', keep = 3, formats = ['ndjson.gz'], chunk = '1 MiB' } = member;
  return { everyMs: milliseconds(every), keep, formats, target: bytesOf(chunk) };
}

/** What the schema cannot say: durations and sizes out of bounds. `pointer`: that of the member. */
export function editionsFaults(member: EditionsMember, pointer: string): readonly BodyFault[] {
  const { everyMs, target } = declaredEditions(member);
  const faults: BodyFault[] = [];
  if (everyMs < LEAST_MS || everyMs > MOST_MS)
    faults.push({ pointer: `${pointer}/every`, detail: 'must be from 1 s to 168 h' });
  if (target < LEAST_BYTES || target > MOST_BYTES)
    faults.push({ pointer: `${pointer}/chunk`, detail: 'must be from 16 KiB to 16 MiB' });
  return faults;
}

function bytesOf(size: string): number {
  return parseInt(size, 10) * (size.endsWith('MiB') ? MIB : 1024);
}
