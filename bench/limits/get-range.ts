/** The limit of the embedded store: lmdb's getRange alone. Each row is looked at and not copied. */
import { join } from 'node:path';
import { open } from 'lmdb';
import { FILE } from '../../src/store/lmdb.ts';
import { rangesOf } from '../../src/store/lmdb/range.ts';
import { Tables, type Database } from '../../src/store/lmdb/tables.ts';
import { answerLines } from './asked.ts';

const root = open({
  path: join(process.env.DATA_DIR ?? '', FILE),
  noSubdir: true,
  maxDbs: 16,
  readOnly: true,
});
const tables = new Tables((name, shape) => root.openDB({ name, ...shape }) as unknown as Database);

await answerLines((plan) => {
  let rows = 0;
  let bytes = 0;
  tables.sink = {
    row: (document) => {
      rows++;
      bytes += document.length;
    },
  };
  const [range] = rangesOf(plan, undefined);
  if (!range) return { rows, bytes };
  const { table, prefix, start, end, reverse } = range;
  const byIndex = table !== 'items';
  tables.prefix = byIndex ? prefix : null;
  const options = { start, end, reverse, exclusiveStart: true, offset: 0, values: !byIndex };
  const entries = tables[table].getRange(options)[Symbol.iterator]();
  while (entries.next().done !== true) if (byIndex) tables.items.get(tables.found);
  return { rows, bytes };
});
await root.close();
