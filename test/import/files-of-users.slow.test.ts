import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/directory.ts';
import { imported } from '../support/import/imported.ts';
import { cli } from '../support/process/child-server.ts';
import { sluice } from '../support/process/commands.ts';
import { program } from '../support/process/programs.ts';
import { serverOn } from '../support/process/server.ts';

/** The program of an advised line, a file that it is for, and how the file is made of that content. */
const ADVISED: readonly (readonly [needed: string, file: string, content: string, made?: string])[] = [
  ['jq', 'stock.json', '{"my rows": [{"id":1,"name":"a"},{"id":2,"name":"b"}], "count": 2}'],
  ['jq', 'lines.json', '{\n"it\'s": [{"id":1,"name":"a"},\n{"id":2,"name":"b"}]}'],
  ['unzip', 'stock.csv', 'id,name\n1,a\n2,b\n', 'zip -q made.zip FILE && mv made.zip FILE'],
  ['bzip2', 'stock.csv.bz2', 'id,name\n1,a\n2,b\n', 'bzip2 < FILE > made && mv made FILE'],
  ['xz', 'stock.ndjson', '{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n', 'xz < FILE > made && mv made FILE'],
];

for (const [needed, name, content, made] of ADVISED)
  test(`the line that opens ${name} with ${needed} imports its rows`, async (t) => {
    const maker = made?.split(' ')[0] ?? needed;
    if (program(t, [needed], []) === null || program(t, [maker], []) === null) return;
    const folder = await temporaryFolder(t);
    const file = join(folder, name);
    const DATA_DIR = join(folder, 'data');
    await writeFile(file, content);
    const shell = (line: string) => line.replaceAll('FILE', `'${name}'`);
    if (made !== undefined) execFileSync('bash', ['-c', shell(made)], { cwd: folder });
    const { code, said } = await sluice(['import', file], { DATA_DIR });
    assert.notEqual(code, 0, said);
    const [, line = ''] = /rows: (.*--into NAME)/.exec(said) ?? [];
    const own = shell(line).replace('sluice import', `'${process.execPath}' '${await cli()}' import`);
    const env = { ...process.env, DATA_DIR, MONGODB_URI: '', SAMPLE: 'off', LOG_LEVEL: 'error' };
    await promisify(execFile)('bash', ['-c', own.replace('NAME', 'stock')], { cwd: folder, env });
    const server = await serverOn(t, { DATA_DIR, MONGODB_URI: '' });
    const rows = await (await server.get('/stock/stream')).text();
    assert.equal(rows, '{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n', line);
  });

test('an object of more than 16 MB that has its rows in a member is refused with the name of the member', async (t) => {
  const data = Array.from({ length: 160_000 }, () => ({ text: 'x'.repeat(100) }));
  for (const content of [JSON.stringify({ data }), JSON.stringify({ data }, null, 1)]) {
    const { code, rows, said } = await imported(t, 'large.json', content);
    assert.deepEqual([code, rows], [1, []], said);
    assert.match(said, /jq -c '\.data\[\]' FILE \| sluice import - --format ndjson --into NAME/);
  }
});
