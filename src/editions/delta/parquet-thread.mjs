/**
 * The thread that makes files of Parquet (see parquet.ts). It is JavaScript, because a thread of a program that runs from
 * its sources has no loader of TypeScript.
 */
import { gzipSync } from 'node:zlib';
import { parentPort } from 'node:worker_threads';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { lowerPriority } from '../../base/low-priority.mjs';
import { columnsOf } from './columns.mjs';
import { CHECKPOINT } from './checkpoint-schema.mjs';
import { scaleOf } from './values.mjs';

/** Gzip makes 124 kB of a megabyte of rows where Snappy in JavaScript makes 202 kB, in the same time. Node 20 has no Zstandard. */
const WAY = { codec: 'GZIP', compressors: { GZIP: (bytes) => gzipSync(bytes) } };

const ELEMENTS = {
  string: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  long: { type: 'INT64' },
  double: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  timestamp: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
};
const DECIMAL = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, converted_type: 'DECIMAL', precision: 38 };
/** By these, readers pass over files. Those of texts would take a quarter of the time, and are cut. */
const WITH_STATISTICS = ['long', 'double', 'timestamp'];

function elementOf({ name, type }) {
  const scale = scaleOf(type);
  const element = scale === undefined ? ELEMENTS[type] : { ...DECIMAL, scale };
  return { ...element, name, repetition_type: 'OPTIONAL' };
}

function chunkOf(rows, schema) {
  const data = columnsOf(rows, schema);
  const columns = [...schema.columns, { name: '_rest', type: 'string' }];
  const columnData = columns.map(({ name, type }, at) => ({
    name,
    data: data[at],
    statistics: WITH_STATISTICS.includes(type),
  }));
  return written(columnData, [{ name: 'root', num_children: columns.length }, ...columns.map(elementOf)]);
}

/** The file of a checkpoint. Each of its rows has one action, in the column of its name. */
function checkpointOf(actions) {
  const columnData = ['protocol', 'metaData', 'add', 'remove'].map((name) => ({
    name,
    data: actions.map((action) => (action[name] ? withLongs(action[name]) : null)),
    statistics: false,
  }));
  return written(columnData, CHECKPOINT);
}

const LONGS = ['size', 'modificationTime', 'createdTime', 'deletionTimestamp'];

function withLongs(action) {
  const members = Object.entries(action).map(([name, value]) => [
    name,
    LONGS.includes(name) ? BigInt(value) : value,
  ]);
  return Object.fromEntries(members);
}

function written(columnData, schema) {
  return new Uint8Array(parquetWriteBuffer({ ...WAY, columnData, schema, rowGroupSize: 1_000_000 }));
}

lowerPriority();

parentPort.on('message', ({ id, rows, schema, actions }) => {
  try {
    const file = actions ? checkpointOf(actions) : chunkOf(rows, schema);
    parentPort.postMessage({ id, file }, [file.buffer]);
  } catch (error) {
    parentPort.postMessage({ id, failure: error.message });
  }
});
