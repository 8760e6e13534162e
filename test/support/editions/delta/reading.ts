import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { READERS, type DeltaReaders } from './readers.ts';
import type { MadeEdition, TestTable } from './table.ts';

/** Where readers find a table, and a folder for files of the test. */
export interface TablePlace {
  readonly uri: string;
  readonly options: Readonly<Record<string, string>>;
  readonly scratch: string;
}

/** Asserts that each reader gives the rows of an edition, of a version or of the newest one (null). */
export async function assertRows(
  readers: DeltaReaders,
  place: TablePlace,
  version: number | null,
  { rows, schema }: Pick<MadeEdition, 'rows' | 'schema'>,
): Promise<void> {
  const file = join(place.scratch, 'rows.ndjson');
  await writeFile(file, [...rows.values()].map((line) => `${line}\n`).join(''));
  const types = Object.fromEntries(schema.columns.map(({ name, type }) => [name, type]));
  const { uri, options } = place;
  const answer = await readers.read({ uri, options, version, types, rows: file, readers: READERS });
  assert.deepEqual(answer, { found: Object.fromEntries(READERS.map((name) => [name, rows.size])) });
}

/** Asserts that the table is its newest edition, and that its kept ones are its older versions. */
export async function assertTable(readers: DeltaReaders, place: TablePlace, table: TestTable): Promise<void> {
  const { newest } = table;
  assert.ok(newest);
  await assertRows(readers, place, null, newest);
  for (const edition of table.kept.slice(0, -1))
    await assertRows(readers, place, edition.head.sequence, edition);
}
