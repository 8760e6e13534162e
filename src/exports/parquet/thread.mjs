/**
 * The thread that makes row groups (see row-groups.ts): takes Arrow IPC streams, and answers each with a file of Parquet, in
 * their order. It is JavaScript, because a thread of a program that runs from its sources has no loader of TypeScript.
 */
import { parentPort } from 'node:worker_threads';
import { Compression, EnabledStatistics, Table, WriterPropertiesBuilder, writeParquet } from 'parquet-wasm';

/** A file is one row group, whose size the exports decide. */
const MOST_ROWS = 2 ** 31 - 1;

parentPort?.on('message', (stream) => {
  const answer = answerTo(stream);
  parentPort?.postMessage(answer, answer.file ? [answer.file.buffer] : []);
});

/** Statistics are those of whole row groups, by which readers pass over them. */
function answerTo(stream) {
  try {
    const properties = new WriterPropertiesBuilder()
      .setCompression(Compression.ZSTD)
      .setStatisticsEnabled(EnabledStatistics.Chunk)
      .setMaxRowGroupSize(MOST_ROWS)
      .build();
    // Table and properties are moved into the library, which frees them. The file is a copy.
    return { file: writeParquet(Table.fromIPCStream(stream), properties) };
  } catch (error) {
    return { error: String(error) };
  }
}
