import { PROBLEM, type ProblemDocument } from '../errors.ts';
import { named, Type, type Static } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });
const shut = (description: string) => ({ additionalProperties: false, description });

const TALLY = named(
  'Tally',
  Type.Object(
    {
      cursor: Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description:
          'continues behind the last row; null: no row came, and the stream began at its beginning',
      }),
      rows: count('rows since the beginning of this answer'),
      bytes: count('bytes of their lines, LF included'),
      crc32: Type.String({ pattern: '^[0-9a-f]{8}$', description: 'CRC-32 of their lines' }),
    },
    shut('what a stream has given so far'),
  ),
);
export type Tally = Readonly<Static<typeof TALLY>>;

export const CHECKPOINT = named(
  'Checkpoint',
  Type.Object({ checkpoint: TALLY }, shut('a control line between rows')),
);
export const END = named('End', Type.Object({ end: TALLY }, shut('the last line of a whole stream')));
export const FAILURE = named(
  'Failure',
  Type.Object({ error: PROBLEM }, shut('the last line of a stream that is cut')),
);

const checkpoint = serializerOf(CHECKPOINT);
const end = serializerOf(END);
const failure = serializerOf(FAILURE);

/** The control lines of a stream with checkpoints, LF included. */
export const controlLines = {
  checkpoint: (tally: Tally) => `${checkpoint({ checkpoint: tally })}\n`,
  end: (tally: Tally) => `${end({ end: tally })}\n`,
  failure: (problem: ProblemDocument) =>
    `${failure({ error: { ...problem, ...(problem.errors && { errors: [...problem.errors] }) } })}\n`,
};
