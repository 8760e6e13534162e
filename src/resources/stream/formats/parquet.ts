import { ArrowEncoder } from '../../../pipeline/arrow-encoder.ts';
import { columnsText } from '../../../rows/arrow/columns.ts';
import { ParquetSink, whyNoParquet } from '../../../pipeline/parquet-sink.ts';
import { arrow, TABLE_OPTIONS } from './arrow.ts';
import type { Format } from './format.ts';

const TYPE = 'application/vnd.apache.parquet';

/** A file that is made of a table of Arrow. */
export const parquet: Format = {
  name: 'parquet',
  types: [TYPE],
  contentType: TYPE,
  extension: 'parquet',
  compressions: ['none'],
  isCompressed: true,
  isFileOnly: true,
  options: TABLE_OPTIONS,
  content: () => ({}),
  whyNot: whyNoParquet,
  read: (query, asked) => {
    const askedTable = arrow.read(query, asked);
    return async (set, transcoder) => {
      const form = await askedTable(set, transcoder);
      // Readers of files need not know the extension type of JSON.
      const head = ArrowEncoder.head({ ...form.table, isJsonText: true });
      const facts = [['sluice.columns', columnsText(form.table.columns)]] as const;
      return {
        ...form,
        contentType: TYPE,
        head: '',
        fileSink: (file) => new ParquetSink(head, file, facts),
      };
    };
  },
};
