import { columnsText } from '../../../rows/arrow/columns.ts';
import { ParquetSink, whyNoParquet } from '../../../pipeline/parquet-sink.ts';
import { arrow } from './arrow.ts';
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
  options: arrow.options,
  content: () => ({}),
  whyNot: whyNoParquet,
  read: (query, asked) => {
    const askedTable = arrow.read(query, asked);
    return async (set, transcoder) => {
      const form = await askedTable(set, transcoder);
      const facts = [['sluice.columns', columnsText(form.table.columns)]] as const;
      return {
        ...form,
        contentType: TYPE,
        head: '',
        fileSink: (file) => new ParquetSink(form.head, file, facts),
      };
    };
  },
};
