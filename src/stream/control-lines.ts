import { PROBLEM, type ProblemDocument } from '../errors.ts';
import { named, Type, type Static } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });
const shut = (description: string) => ({ additionalProperties: false, description });

const cursor = (description: string) => Type.Unsafe<string | null>({ type: ['string', 'null'], description });
const CURSOR = 'continues behind the last row; null: no row came, and the stream began at its beginning';
const SUMS = {
  rows: count('rows since the beginning of this answer'),
  bytes: count('bytes of their lines, LF included'),
  crc32: Type.String({ pattern: '^[0-9a-f]{8}$', description: 'CRC-32 of their lines' }),
};
const TALLY = named(
  'Tally',
  Type.Object({ cursor: cursor(CURSOR), ...SUMS }, shut('what a stream has given so far')),
);
const END_TALLY = named(
  'EndTally',
  Type.Object(
    { cursor: Type.Optional(cursor(`${CURSOR}; absent: its key is too long for a cursor`)), ...SUMS },
    shut('what a whole stream has given'),
  ),
);
export type Tally = Readonly<Static<typeof TALLY>>;
export type EndTally = Readonly<Static<typeof END_TALLY>>;

export const CHECKPOINT = named(
  'Checkpoint',
  Type.Object({ checkpoint: TALLY }, shut('a control line between rows')),
);
export const END = named('End', Type.Object({ end: END_TALLY }, shut('the last line of a whole stream')));
export const FAILURE = named(
  'Failure',
  Type.Object({ error: PROBLEM }, shut('the last line of a stream that is cut')),
);

const checkpoint = serializerOf(CHECKPOINT);
// fast-json-stringify writes optional members last. Each form has its own serializer, so that it keeps its order.
const end = serializerOf(Type.Object({ end: TALLY }));
const endWithoutCursor = serializerOf(Type.Object({ end: Type.Object(SUMS) }));
const failure = serializerOf(FAILURE);

/** The control lines of a stream with checkpoints, LF included. */
export const controlLines = {
  checkpoint: (tally: Tally) => `${checkpoint({ checkpoint: tally })}\n`,
  end: ({ cursor, ...sums }: EndTally) =>
    `${cursor === undefined ? endWithoutCursor({ end: sums }) : end({ end: { cursor, ...sums } })}\n`,
  failure: (problem: ProblemDocument) =>
    `${failure({ error: { ...problem, ...(problem.errors && { errors: [...problem.errors] }) } })}\n`,
};
