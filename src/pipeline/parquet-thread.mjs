/**
 * The thread that makes a file of Parquet (see parquet-sink.ts) out of Arrow IPC streams of some record batches each. It is
 * JavaScript, because a thread of a program that runs from its sources has no loader of TypeScript.
 */
import { workerData } from 'node:worker_threads';
import {
  Compression,
  EnabledStatistics,
  Table,
  transformParquetStream,
  WriterPropertiesBuilder,
} from 'parquet-wasm';
import { lowerPriority } from '../base/low-priority.mjs';

const { rows, file, group, facts } = workerData;

lowerPriority();

/** Statistics are those of whole row groups, by which readers pass over them. */
const properties = new WriterPropertiesBuilder()
  .setCompression(Compression.ZSTD)
  .setStatisticsEnabled(EnabledStatistics.Chunk)
  .setMaxRowGroupSize(group.rows)
  .setMaxRowGroupBytes(group.bytes)
  .setKeyValueMetadata(new Map(facts))
  .build();

/** Without `free`, each table would stay in the memory of the library. */
const batches = new TransformStream({
  transform(stream, controller) {
    const table = Table.fromIPCStream(stream);
    for (const batch of table.recordBatches()) controller.enqueue(batch);
    table.free();
  },
});

const parquet = await transformParquetStream(rows.pipeThrough(batches), properties);
await parquet.pipeTo(file);
