import { COMPRESSIONS } from '../../../pipeline/pieces.ts';
import type { Format } from './format.ts';

const TYPE = 'application/json';

/** All rows as one array, which a cut leaves open. */
export const json: Format = {
  name: 'json',
  types: [TYPE],
  contentType: TYPE,
  extension: 'json',
  compressions: COMPRESSIONS,
  options: [],
  content: ({ row: { schema }, noun, examples }) => ({
    [TYPE]: {
      schema: { type: 'array', items: schema, description: `all matching ${noun.many}` },
      ...(examples.stream?.json && { example: examples.stream.json }),
    },
  }),
  fileSchema: { description: 'all rows as an array' },
  read:
    (_, { fields }) =>
    ({ resource }, transcoder) => ({
      contentType: TYPE,
      head: '[',
      write: () => ({ encoder: transcoder.encoder('array', resource.shown.pick(fields)), tail: () => ']\n' }),
    }),
};
