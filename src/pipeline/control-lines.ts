import { PROBLEM, type ProblemDocument } from '../base/errors.ts';
import { count, namedObject, text, textOrNull, Type, type Static } from '../base/schema.ts';
import { serializerOf } from '../rows/serializers.ts';

const CURSOR =
  'the cursor that continues after the last row; null: no row was sent, and the stream started at the beginning';
const SUMS = {
  rows: count('the number of rows since the start of this response'),
  bytes: count('the number of bytes in the lines of these rows, including LF'),
  crc32: Type.String({ pattern: '^[0-9a-f]{8}$', description: 'the CRC-32 of the lines of these rows' }),
};
const TALLY = namedObject('Tally', 'what the stream has sent so far', {
  cursor: textOrNull(CURSOR),
  ...SUMS,
});
const END_TALLY = namedObject('EndTally', 'what the stream has sent', {
  cursor: Type.Optional(textOrNull(`${CURSOR}; absent: the key of the last row is too long for a cursor`)),
  ...SUMS,
  changes: Type.Optional(
    text('the cursor from which the changes since this stream began follow: see /{resource}/changes'),
  ),
});
type Tally = Readonly<Static<typeof TALLY>>;
export type EndTally = Readonly<Static<typeof END_TALLY>>;
/** What a stream has sent so far. */
export type Sums = Omit<Tally, 'cursor'>;

/** How a kind of stream writes its control lines, LF included. */
export interface ControlForm {
  readonly checkpoint: (tally: Tally) => string;
  readonly end: (tally: EndTally) => string;
}

export const CHECKPOINT = namedObject('Checkpoint', 'a control line between rows', { checkpoint: TALLY });
export const END = namedObject('End', 'the last line of a stream that was not cut', { end: END_TALLY });
export const FAILURE = namedObject('Failure', 'the last line of a stream that failed and is then cut', {
  error: PROBLEM,
});

const failure = serializerOf(FAILURE);

/** The control lines of a stream with checkpoints, LF included. */
export const controlLines = {
  checkpoint: (tally: Tally) => `${JSON.stringify({ checkpoint: tally })}\n`,
  end: (tally: EndTally) => `${JSON.stringify({ end: tally })}\n`,
  failure: (problem: ProblemDocument) =>
    `${failure({ error: { ...problem, ...(problem.errors && { errors: [...problem.errors] }) } })}\n`,
};
