import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImportArguments } from '../../src/import/command.ts';
import { TAKEN } from '../../src/resources/declarations.ts';
import { UsageError } from '../../src/terminal/arguments.ts';

/** The name of the resource that a command writes. */
function nameFrom(...argv: readonly string[]): string | undefined {
  const command = parseImportArguments(argv);
  assert.ok(command.kind === 'file');
  return command.into?.name;
}

/** What a file of this name is refused with. */
function refusal(file: string): string {
  try {
    nameFrom(file, '--format', 'csv');
  } catch (error) {
    assert.ok(error instanceof UsageError, file);
    return error.message;
  }
  return assert.fail(`${file} is taken`);
}

const NAMES: readonly (readonly [file: string, name: string])[] = [
  ['stock.csv', 'stock'],
  ['/srv/a b/stock.csv', 'stock'],
  ['./data.d/stock.ndjson', 'stock'],
  ['stock.csv.gz', 'stock'],
  ['stock.jsonl.zst', 'stock'],
  ['stock.json.br', 'stock'],
  ['Stock.CSV.GZ', 'Stock'],
  ['stock-2024.01.csv', 'stock-2024.01'],
  ['stock.csv.csv', 'stock.csv'],
  ['stock.gz', 'stock'],
  ['stock', 'stock'],
  ['stock.dat', 'stock.dat'],
  ['items.csv', 'items'],
  ['Items.csv', 'Items'],
  [`${'a'.repeat(120)}.csv`, 'a'.repeat(120)],
];

test('a resource has the name of its file without folder, format and compression, letter for letter', () => {
  for (const [file, name] of NAMES) {
    assert.equal(nameFrom(file, '--format', 'csv'), name, file);
    assert.equal(nameFrom(file, '--format', 'csv', '--into', 'other'), 'other', file);
  }
});

const NO_SEGMENTS = ['a b', 'größe', '.a', '-a', '_a', 'a,b', "it's", 'a%20b', '表', 'a'.repeat(121)];

test('a file whose name no resource may have is refused with a name that one may have', () => {
  for (const name of [...TAKEN.filter((one) => one !== 'items'), ...NO_SEGMENTS]) {
    const message = refusal(`./${name}.csv`);
    const [, offered = ''] = / --into (\S+)$/.exec(message) ?? [];
    assert.equal(nameFrom(`./${name}.csv`, '--into', offered), offered, message);
    const reason = TAKEN.includes(name) ? /is taken by a route/ : /cannot be a segment of a URL/;
    assert.match(message, reason, name);
    assert.throws(() => nameFrom('a.csv', `--into=${name}`), reason, name);
  }
});

test('standard input needs a name', () => {
  assert.match(refusal('-'), /^--into NAME is required: standard input has no file name$/);
});
