import assert from 'node:assert/strict';
import { test } from 'node:test';
import { section, tableRows, testText } from '../support/papers/documents.ts';

test('every promise of docs/security.md names a test that exists', () => {
  const rows = tableRows(section('docs/security.md', 'What a key does not reveal'));
  assert.ok(rows.length > 10);
  for (const [promise = '', proof = ''] of rows) {
    const [, file = '', name = ''] = /^`([a-z/-]+)`: (.+)$/.exec(proof) ?? [];
    const text = testText(file);
    const titles = [...text.matchAll(/\b(?:test|it)\(\s*(['"`])(.*?)\1,/g)].map(([, , title = '']) => title);
    assert.ok(
      titles.some((title) => title.replace(/^\$\{store\}: | \(seed \$\{SEED\}\)$/g, '') === name),
      `${promise}: ${file} has no test "${name}"`,
    );
  }
});
