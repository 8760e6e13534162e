import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newNotes, type Request } from '../../src/engine/edge.ts';
import { prefers } from '../../src/http/prefer.ts';

function asking(prefer: string): Request {
  const { signal } = new AbortController();
  const body = () => Promise.resolve(new Uint8Array());
  const head = { method: 'GET', path: '/', query: '', headers: { prefer }, address: '' };
  return { ...head, signal, notes: newNotes(), body };
}

describe('the header Prefer', () => {
  const present = [
    'return=minimal',
    'RETURN = Minimal',
    'return="minimal"',
    'wait=10, return=minimal; a="b"',
    ',, return=minimal ;,',
  ];
  for (const text of present)
    it(`asks for a minimal answer as ${text}`, () => {
      assert.ok(prefers(asking(text), 'return=minimal'));
    });

  for (const text of ['', 'return', 'return=', 'return=minimal=x', 'xreturn=minimal', 'a; return=minimal'])
    it(`does not ask for a minimal answer as ${JSON.stringify(text)}`, () => {
      assert.ok(!prefers(asking(text), 'return=minimal'));
    });

  it('asks by a name alone, or with an empty value, which means the same', () => {
    for (const text of ['respond-async', 'respond-async=""', 'respond-async=; wait=1'])
      assert.ok(prefers(asking(text), 'respond-async'), text);
    assert.ok(!prefers(asking('respond-async=1'), 'respond-async'));
  });
});
