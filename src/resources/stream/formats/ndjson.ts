import { documented, oneOf } from '../../../input/parameter.ts';
import { nameOf } from '../../../base/schema.ts';
import { CheckpointEncoder } from '../../../pipeline/checkpoints.ts';
import { CHECKPOINT, controlLines, END, FAILURE, type ControlForm } from '../../../pipeline/control-lines.ts';
import { COMPRESSIONS } from '../../../pipeline/pieces.ts';
import type { Format } from './format.ts';

const checkpoints = documented(
  oneOf('checkpoints', ['true', 'false']),
  'NDJSON only: add control lines that state the number of rows so far and their CRC-32.',
  { fallback: 'false' },
);

const [TYPE, ALIAS] = ['application/x-ndjson', 'application/jsonl'] as const;

/** A row a line. Checkpoints between the rows prove them. */
export const ndjson = {
  name: 'ndjson',
  types: [TYPE, ALIAS],
  contentType: TYPE,
  extension: 'ndjson',
  compressions: COMPRESSIONS,
  options: [{ parameter: checkpoints, neutral: 'false' }],
  content: ({ row: { schema }, examples }) => ({
    [TYPE]: {
      schema: {
        type: 'string',
        description: `One ${nameOf(schema) ?? 'row'} per line, each line ended by LF. With \`checkpoints=true\`, some lines are a Checkpoint, End or Failure instead.`,
      },
      lines: [schema, CHECKPOINT, END, FAILURE],
      ...(examples.stream?.ndjson && { example: examples.stream.ndjson }),
    },
    [ALIAS]: { schema: { type: 'string', description: `the same as ${TYPE}` } },
  }),
  read: (query, { type, fields }) => {
    const hasCheckpoints = checkpoints.read(query) === 'true';
    return ({ resource }, transcoder) => ({
      contentType: type,
      head: '',
      write: ({ changes, ...proof }) => {
        const encoder = transcoder.encoder('lines', resource.shown.pick(fields));
        if (!hasCheckpoints) return { encoder };
        const proving = new CheckpointEncoder(encoder, { ...proof, form: linesWith(changes) });
        return { encoder: proving, tail: () => proving.end(), proving };
      },
    });
  },
} as const satisfies Format;

/** The control lines of a stream, whose end has the place from which its changes follow. */
function linesWith(changes: string | undefined): ControlForm {
  if (changes === undefined) return controlLines;
  return { ...controlLines, end: (tally) => controlLines.end({ ...tally, changes }) };
}
