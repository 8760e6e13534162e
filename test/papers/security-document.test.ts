import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Route } from '../../src/http/route.ts';
import { keyedServer } from '../support/access/keyed.ts';
import { documentText, section, tableRows, testText } from '../support/papers/documents.ts';

test('the public paths of docs/security.md are those of the routes that need no key', async (t) => {
  let routes: readonly Route[] = [];
  await keyedServer(
    t,
    'sqlite',
    [{ name: 'all' }],
    [],
    {},
    { tap: (serve, all) => ((routes = all()), serve) },
  );
  const [, line = ''] = /These need no key: ([^]*?`)\./.exec(documentText('docs/security.md')) ?? [];
  const listed = [...line.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
  const open = routes.filter(({ access }) => access !== 'keyed').map(({ path }) => path);
  const isMatch = (path: string, pattern: string) =>
    pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
  assert.deepEqual(
    open.filter((path) => !listed.some((one) => isMatch(path, one))),
    [],
  );
  assert.deepEqual(
    listed.filter((one) => !open.some((path) => isMatch(path, one))),
    [],
  );
  const keyed = routes.filter(({ access }) => access === 'keyed').map(({ path }) => path);
  assert.deepEqual(
    keyed.filter((path) => listed.some((one) => isMatch(path, one))),
    [],
  );
});

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
