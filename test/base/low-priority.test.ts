import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { parquetOf } from '../../src/editions/delta/parquet.ts';
import { tableSchema } from '../../src/editions/delta/schema.ts';
import { ParquetSink } from '../../src/pipeline/parquet-sink.ts';
import { schemaMessage, batchMessage } from '../../src/rows/arrow/messages.ts';

const skip = process.platform !== 'linux' && 'only Linux has a priority for each thread';
const COLUMNS = [{ name: 'id', kind: 'text' }] as const;
const LOWERED = Math.min(19, getPriority() + 10);

/** The nice values of the threads of this process. */
function niceValues(): number[] {
  return readdirSync('/proc/self/task').map((thread) => {
    const [, fields = ''] = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ');
    return Number(fields.split(' ')[16]);
  });
}

const lowered = () => niceValues().filter((nice) => nice === LOWERED).length;

async function exportOfNoRows(): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  const file = {
    chunkBytes: 1,
    signal: new AbortController().signal,
    write: (bytes: Uint8Array) => void parts.push(bytes),
    flush: () => undefined,
    end: () => undefined,
    fail: () => undefined,
  };
  const sink = new ParquetSink(schemaMessage(COLUMNS, {}), file, []);
  const none = { at: 0, length: 0 };
  try {
    // The second flush waits until the thread has read the first rows. It then waits for others, or for the end.
    for (let n = 0; n < 2; n++) {
      sink.write(batchMessage(0, [{ nulls: 0, buffers: [none, none, none] }], 0, {}));
      await sink.flush();
    }
    assert.equal(lowered(), 1, 'the thread of the export alone');
    await sink.end();
  } finally {
    await sink.close();
  }
  return Buffer.concat(parts);
}

test(
  'a thread that makes Parquet for an export lets those that answer requests go first',
  { skip },
  async () => {
    const before = niceValues();
    const file = await exportOfNoRows();
    assert.equal(file.subarray(-4).toString(), 'PAR1');
    assert.deepEqual(new Set(niceValues()), new Set(before), 'no other thread changed');
  },
);

test(
  'a thread that makes Parquet for editions lets those that answer requests go first',
  { skip },
  async () => {
    await parquetOf(Buffer.from('{"id":"a"}\n'), tableSchema(COLUMNS));
    assert.equal(lowered(), 1);
  },
);
