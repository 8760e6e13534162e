import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parquetOf } from '../../../src/editions/delta/parquet.ts';
import { tableSchema } from '../../../src/editions/delta/schema.ts';

const SCHEMA = tableSchema([
  { name: 'id', kind: 'text' },
  { name: 'n', kind: 'integer' },
]);
const ROW = '{"id":"a\\\\","n":-12,"more":[{"x":"}\\""}],"last":true}\n';

test('rows that were cut anywhere are refused, and whole ones made in the same thread', async () => {
  const whole = await parquetOf(Buffer.from(ROW), SCHEMA);
  assert.equal(Buffer.from(whole.subarray(-4)).toString(), 'PAR1');
  for (let length = 1; length < ROW.length; length++)
    await assert.rejects(
      parquetOf(Buffer.from(ROW.slice(0, length)), SCHEMA),
      /ends before its end/,
      ROW.slice(0, length),
    );
  const again = await Promise.all([ROW, ROW + ROW].map((rows) => parquetOf(Buffer.from(rows), SCHEMA)));
  assert.deepEqual(again[0], whole);
});
