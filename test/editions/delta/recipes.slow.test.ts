import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { tableSchema } from '../../../src/editions/delta/schema.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { folderObjects } from '../../support/editions/delta/objects.ts';
import { findLakePython } from '../../support/editions/delta/readers.ts';
import { TestTable } from '../../support/editions/delta/table.ts';

const PAGE = join(import.meta.dirname, '../../../docs/editions.md');
const run = promisify(execFile);

const OLD = [
  ['o1', '{"id":"o1","total":12.50,"customer":{"country":"NL"}}'],
  ['o2', '{"id":"o2","total":3.00}'],
  ['o3', '{"id":"o3","total":null}'],
] as const;
/** What each program prints. */
const SAID = [
  "2\n3\n[('o1', Decimal('12.50'))]\n",
  "2\n3\n[('o1', Decimal('12.50'))]\n",
  '{"id": "o1", "total": "12.50", "customer": {"country": "NL"}}\n{"id": "o3", "total": null}\n',
];
/** DuckDB has no network here: its extension comes from a wheel. */
const FROM_WHEEL = `import os, duckdb_extension_delta
folder = os.path.join(os.path.dirname(duckdb_extension_delta.__file__), 'extensions', 'v' + duckdb.__version__)
duckdb.execute(f"LOAD '{folder}/delta.duckdb_extension'")`;

test('the programs of the page of editions read a Delta table', async (t) => {
  const python = await findLakePython(t);
  if (python === null) return;
  const folder = await temporaryFolder(t);
  const schema = tableSchema([
    { name: 'id', kind: 'text' },
    { name: 'total', kind: 'decimal(38,2)' },
  ]);
  const table = new TestTable(folderObjects(folder), 'orders', schema, 2);
  await table.store(new Map(OLD));
  await table.commit();
  await table.store(new Map(OLD.filter(([id]) => id !== 'o2')));
  await table.commit();
  const page = await readFile(PAGE, 'utf8');
  const programs = [...page.matchAll(/```python\n([^`]*TABLE[^`]*)```/g)].map(([, program = '']) =>
    program.replace("duckdb.execute('LOAD delta')", FROM_WHEEL),
  );
  const env = { ...process.env, TABLE: join(folder, 'orders'), EDITION: '0' };
  const said = programs.map(async (program) => (await run(python, ['-c', program], { env })).stdout);
  assert.deepEqual(await Promise.all(said), SAID);
});
