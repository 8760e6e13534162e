import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prefers } from '../../src/http/prefer.ts';
import { requestOf } from '../support/engine/engines.ts';

const asking = (prefer: string) => requestOf({ headers: { prefer } });

test('Prefer is read with any case, blanks, quotes and parameters, beside other preferences', () => {
  const minimal = [
    'return=minimal',
    'RETURN = Minimal',
    'return="minimal"',
    'wait=10, return=minimal; a="b"',
  ];
  for (const text of [...minimal, ',, return=minimal ;,'])
    assert.ok(prefers(asking(text), 'return=minimal'), text);
  for (const text of ['', 'return', 'return=', 'return=minimal=x', 'xreturn=minimal', 'a; return=minimal'])
    assert.ok(!prefers(asking(text), 'return=minimal'), text);
  // A name alone means the same as an empty value.
  for (const text of ['respond-async', 'respond-async=""', 'respond-async=; wait=1'])
    assert.ok(prefers(asking(text), 'respond-async'), text);
  assert.ok(!prefers(asking('respond-async=1'), 'respond-async'));
});
