import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from '../../src/base/registry.ts';

test('what is removed twice does not remove what took its place', () => {
  const open = new Registry<{ readonly name: string }>();
  const a = { name: 'a' };
  const b = { name: 'b' };
  const c = { name: 'c' };
  const ofA = open.add(a);
  const ofB = open.add(b);
  open.remove(ofA, a);
  assert.equal(open.add(c), ofA, 'a free place is used again');
  open.remove(ofA, a);
  assert.deepEqual([open.size, open.all()], [2, [c, b]]);
  open.remove(ofB, b);
  assert.deepEqual([open.size, open.all()], [1, [c]]);
});
