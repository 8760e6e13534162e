import { createWriteStream, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SyntheticItems } from '../src/import/synthetic.ts';
import { BSON, type Document } from '../src/store/values/bson.ts';

export type FileForm = 'ndjson' | 'csv';

const SEED = 1;
const ROWS_PER_WRITE = 1_000;
const HEADER = ['_id', 'name', 'category', 'price', 'description', 'stock', 'createdAt', 'updatedAt'];
/** As mongoexport writes them: NDJSON in Extended JSON, and CSV with a header. The generated texts have no commas. */
const FORMS: Readonly<Record<FileForm, { head: string; line: (item: Document) => string }>> = {
  ndjson: { head: '', line: (item) => BSON.EJSON.stringify(item) },
  csv: {
    head: `${HEADER.join()}\n`,
    line: (item) =>
      HEADER.map((name) => {
        const value: unknown = item[name];
        return value instanceof Date ? value.toISOString() : String(value);
      }).join(),
  },
};

const files = new Map<string, Promise<string>>();

/** A file with the first `rows` items that `sluice import --generate` makes. It is removed when this process ends. */
export async function itemsFile(rows: number, form: FileForm): Promise<string> {
  const name = `${rows}.${form}`;
  const made = files.get(name) ?? write(name, rows, form);
  files.set(name, made);
  return made;
}

async function write(name: string, rows: number, form: FileForm): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-file-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, name);
  const out = createWriteStream(file);
  const { head, line } = FORMS[form];
  out.write(head);
  const items = new SyntheticItems(SEED);
  for (let done = 0; done < rows; done += ROWS_PER_WRITE) {
    let text = '';
    for (let n = Math.min(ROWS_PER_WRITE, rows - done); n > 0; n--)
      text += `${line(BSON.deserialize(items.next()))}\n`;
    if (!out.write(text)) await once(out, 'drain');
  }
  out.end();
  await once(out, 'finish');
  return file;
}
