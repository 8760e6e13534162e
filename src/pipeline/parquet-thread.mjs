/**
 * The thread that makes a file of Parquet (see parquet-sink.ts) out of Arrow IPC streams of some record batches each. It is
 * JavaScript, because a thread of a program that runs from its sources has no loader of TypeScript.
 */
import { on } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import {
  Compression,
  EnabledStatistics,
  Table,
  transformParquetStream,
  WriterPropertiesBuilder,
} from 'parquet-wasm';
import { lowerPriority } from '../base/low-priority.mjs';

const { file, group, facts } = workerData;

lowerPriority();

/** Statistics are those of whole row groups, by which readers pass over them. */
const properties = new WriterPropertiesBuilder()
  .setCompression(Compression.ZSTD)
  .setStatisticsEnabled(EnabledStatistics.Chunk)
  .setMaxRowGroupSize(group.rows)
  .setMaxRowGroupBytes(group.bytes)
  .setKeyValueMetadata(new Map(facts))
  .build();

/** The record batches of the streams that come, until null does. Each message back says that a stream was read. */
async function* recordBatches() {
  for await (const [stream] of on(parentPort, 'message')) {
    if (stream === null) return;
    const table = Table.fromIPCStream(stream);
    parentPort.postMessage(null);
    yield* table.recordBatches();
    table.free(); // or it stays in the memory of the library
  }
}

const parquet = await transformParquetStream(ReadableStream.from(recordBatches()), properties);
await parquet.pipeTo(file);
