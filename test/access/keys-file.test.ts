import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseKeys } from '../../src/access/keys-file.ts';
import { Keyring } from '../../src/access/keys.ts';
import { ACTIONS, opens, rightsOf } from '../../src/access/rights.ts';
import { newKey, parseKeyArguments } from '../../src/process/key-command.ts';
import { keysText } from '../support/access/keys-text.ts';

const FULL = {
  name: 'acme',
  resources: ['orders'],
  actions: ['read', 'stream'],
  where: { orders: { tenant: 'acme', region: 7, isOpen: true, gone: null } },
  hide: { orders: ['margin', 'cost.net'] },
  expires: '2030-01-01T00:00:00Z',
  rate: '100/s',
  streams: 3,
};

test('the JSON form of a key has resources, actions, rows, hidden fields, an end and limits', () => {
  const { keys, faults } = parseKeys(keysText([FULL, { name: 'all' }]));
  assert.deepEqual(faults, []);
  const [acme, all] = keys;
  assert.ok(acme && all);
  assert.deepEqual([...(acme.rights.resources ?? [])], ['orders']);
  assert.deepEqual([...acme.rights.actions], ['read', 'stream']);
  assert.deepEqual(acme.rights.scopes.get('orders'), {
    where: [
      ['gone', 'null:'],
      ['isOpen', 'bool:true'],
      ['region', 'int:7'],
      ['tenant', 'acme'],
    ],
    hide: ['cost.net', 'margin'],
  });
  assert.equal(acme.expires, Date.UTC(2030, 0));
  assert.deepEqual([acme.rate, acme.streams], [{ limit: 100, windowSeconds: 1 }, 3]);
  assert.deepEqual([all.rights.hash, all.rights.resources, all.expires], ['', null, Infinity]);
});

test('nothing opens by omission', () => {
  const of = (given: object) => parseKeys(keysText([{ name: 'k', ...given }])).keys[0]?.rights;
  assert.deepEqual([...(of({ where: { orders: { a: 1 } } })?.resources ?? [])], ['orders']);
  assert.deepEqual([...(of({ hide: { orders: ['a'] } })?.resources ?? [])], ['orders']);
  assert.equal(of({ resources: [] })?.resources?.size, 0);
  assert.equal(of({ actions: [] })?.actions.size, 0);
  for (const part of [
    { where: { orders: { a: 1 } } },
    { hide: { orders: ['a'] } },
    { resources: ['orders'] },
  ])
    assert.ok(!of(part)?.actions.has('metrics'), 'metrics name all resources');
  assert.ok(of({ resources: ['orders'], actions: ['metrics'] })?.actions.has('metrics'));
  assert.deepEqual([...(of({})?.actions ?? [])], [...ACTIONS]);
  assert.ok(!opens(rightsOf({ where: { constructor: { a: '1' } } }), 'orders'));
});

test('the error for each fault of a JSON file names its place, not its value', () => {
  const faulty: readonly (readonly [object, RegExp])[] = [
    [{ nope: 1 }, /\/keys\/0\/nope: unknown field/],
    [{ name: 'a b' }, /\/keys\/0\/name: expected the name/],
    [{ sha256: 'secret-in-clear' }, /\/keys\/0\/sha256: expected the SHA-256/],
    [{ actions: ['write'] }, /\/keys\/0\/actions\/0: expected one of read/],
    [{ resources: 'orders' }, /\/keys\/0\/resources: expected names/],
    [{ where: { orders: { tenant: { $ne: 'x' } } } }, /a name must not begin with "\$"/],
    [{ where: { orders: { tenant: { x: 1 } } } }, /\/keys\/0\/where\/orders\/tenant: expected a value/],
    [{ where: { orders: { tenant: ['a', 'b'] } } }, /\/keys\/0\/where\/orders\/tenant: expected a value/],
    [{ where: { orders: {} } }, /\/keys\/0\/where\/orders: expected/],
    [{ where: {} }, /\/keys\/0\/where: expected/],
    [{ hide: { orders: [] } }, /\/keys\/0\/hide\/orders: expected/],
    [{ resources: ['orders'], where: { order: { a: 1 } } }, /\/keys\/0\/where: "order" is not among/],
    [{ expires: '2030-01-01T00:00:00' }, /\/keys\/0\/expires: the date has no valid zone/],
    [{ expires: 'soon' }, /\/keys\/0\/expires: the date is not a date/],
    [{ rate: 'off' }, /\/keys\/0\/rate: expected a rate/],
    [{ rate: '5' }, /\/keys\/0\/rate: expected a rate/],
    [{ streams: 0 }, /\/keys\/0\/streams: expected a number/],
  ];
  for (const [given, fault] of faulty) {
    const { keys, faults } = parseKeys(keysText([{ name: 'k', ...given }]));
    assert.match(faults.join('\n'), fault);
    assert.doesNotMatch(faults.join('\n'), /secret-in-clear|[0-9a-f]{20}/);
    assert.ok(faults.length > 0 && keys.length <= 1);
  }
  for (const text of ['{', '{"keys":{}}', '{"keys":[]}', '{}', '{"keys":[],"more":1}'])
    assert.ok(parseKeys(text).faults.length > 0, text);
  const twice = `{"keys":[{"name":"a","sha256":"${'ab'.repeat(32)}","where":{"o":{"t":"a"}},"where":{"o":{"t":"b"}}}]}`;
  assert.ok(parseKeys(twice).faults.length > 0, 'a member that is given twice is a fault, not the last one');
  const same = keysText([
    { name: 'a' },
    { name: 'b', sha256: 'ab'.repeat(32) },
    { name: 'c', sha256: 'AB'.repeat(32) },
  ]);
  assert.match(parseKeys(same).faults.join(), /\/keys\/2\/sha256: \/keys\/1 has the same key/);
});

test('a file may have thousands of keys', () => {
  const keys = Array.from({ length: 5_000 }, (_, n) => ({ ...FULL, name: `k${n}` }));
  const read = parseKeys(keysText(keys));
  assert.deepEqual([read.keys.length, read.faults], [5_000, []]);
});

test('sluice key new prints a key once, with the line that the server accepts', () => {
  const printed = newKey(parseKeyArguments(['new', '--name', 'acme']));
  const [, key = '', line = '', entry = ''] = /: +(\S+)\n.*: (\S+ \S+)\n.*: +(\{.*\})\n$/.exec(printed) ?? [];
  for (const file of [line, `{"keys":[${entry}]}`]) {
    const { keys, faults } = parseKeys(file);
    assert.deepEqual(faults, []);
    assert.equal(new Keyring(keys).authenticate(`Bearer ${key}`).name, 'acme');
  }
  assert.notEqual(newKey('acme'), printed);
  for (const wrong of [
    [],
    ['new'],
    ['old', '--name', 'a'],
    ['new', '--name', 'a b'],
    ['new', 'x', '--name', 'a'],
  ])
    assert.throws(() => parseKeyArguments(wrong), { name: 'UsageError' });
});
