import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../src/errors.ts';
import { parseQuery } from '../../src/input/query.ts';

function refusalOf(query: string): string {
  try {
    parseQuery(query, ['name']);
    return '';
  } catch (error) {
    assert.ok(error instanceof AppError);
    assert.equal(error.code, 'invalid-parameter');
    return error.message;
  }
}

test('a text that was typed without percent signs is refused with the text to write', () => {
  assert.equal(
    refusalOf('name=Möbel €'),
    '"Möbel €" is not percent-encoded UTF-8. Write M%C3%B6bel%20%E2%82%AC, or use curl -G --data-urlencode.',
  );
  assert.match(refusalOf('näme=1'), /Write n%C3%A4me,/);
  for (const text of ['%FF', '%zz', 'ö%FF', '\ufffd', '\ud800'])
    assert.equal(refusalOf(`name=${text}`), `${JSON.stringify(text)} is not percent-encoded UTF-8.`);
});
