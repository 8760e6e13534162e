import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import type { EditionHead } from '../../../src/base/edition/head.ts';
import { chunkFile } from '../../../src/base/edition/names.ts';
import { parquetOf } from '../../../src/editions/delta/parquet.ts';
import type { EditionMaker } from './edition-maker.ts';

const LOG = 'items/_delta_log/';

/** Asserts that each chunk of Parquet of an edition is made of the rows of its chunk of NDJSON, in columns of the record. */
export async function assertParquet(head: EditionHead, maker: EditionMaker): Promise<void> {
  const { tables } = await maker.records.get('items', new AbortController().signal);
  const schema = tables.find((one) => one.schema.name === head.schema)?.schema;
  assert.ok(schema);
  const files = maker.files();
  for (const { name, sizes } of (await files.contents(head)).chunks) {
    const text = gunzipSync((await files.objects.get(files.pathOf(chunkFile(name, 'ndjson.gz')))) ?? '');
    const file = await files.objects.get(files.pathOf(chunkFile(name, 'parquet', schema.name)));
    assert.ok(file);
    assert.equal(file.length, sizes.parquet);
    assert.deepEqual(Buffer.from(file), Buffer.from(await parquetOf(text, schema)));
  }
}

/** The versions of the Delta table that have a file, in order. */
export async function versionsOf(maker: EditionMaker): Promise<number[]> {
  const versions = new Set<number>();
  for await (const { path } of maker.files().objects.list(LOG))
    if (!path.endsWith('_last_checkpoint')) versions.add(parseInt(path.slice(LOG.length), 10));
  return [...versions].toSorted((a, b) => a - b);
}
