import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '../../src/base/errors.ts';
import { parseKeys, readKeysFile } from '../../src/access/keys-file.ts';
import { Keyring } from '../../src/access/keys.ts';
import { temporaryFolder } from '../support/directory.ts';

const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');

const FILE = `# who may ask
alice ${sha256('alice-key')}
bob\t${sha256('bob-key').toUpperCase()}   # in capitals

  alice   ${sha256('alice-new-key')}\r
`;

function authenticate(authorization: string | undefined): string {
  return new Keyring(parseKeys(FILE).keys).authenticate(authorization).name;
}

function refusal(authorization: string | undefined): { challenge: string; detail: string } {
  try {
    authenticate(authorization);
  } catch (error) {
    assert.ok(error instanceof AppError);
    assert.deepEqual([error.code, error.status], ['unauthorized', 401]);
    return { challenge: error.headers['www-authenticate'] ?? '', detail: error.message };
  }
  return assert.fail(`let in: ${authorization}`);
}

test('a valid key authenticates its client, and a successor key the same client', () => {
  assert.deepEqual(parseKeys(FILE).faults, []);
  assert.equal(authenticate('Bearer alice-key'), 'alice');
  assert.equal(authenticate('Bearer alice-new-key'), 'alice');
  assert.equal(authenticate('bearer   bob-key'), 'bob');
  assert.equal(authenticate('BEARER bob-key '), 'bob');
});

test('a missing key gets a plain challenge, a wrong key an invalid_token error, and neither repeats the key', () => {
  const none = 'Bearer realm="sluice"';
  for (const header of [undefined, '', 'Basic YTpi', 'alice-key', 'Digest username="a"', 'Bearer:alice-key'])
    assert.equal(refusal(header).challenge, none, header);
  const wrong = [
    'Bearer',
    'Bearer ',
    'Bearer =',
    'Bearer mallory-key',
    'Bearer alice-ke',
    'Bearer alice-keyy',
    'Bearer ALICE-KEY',
    'Bearer alice-key alice-key',
    'Bearer alice-key, Bearer alice-key',
    'Bearer "alice-key"',
    'Bearer alice-key\u0000',
    'Bearer ålice-key',
    `Bearer ${sha256('alice-key')}`,
    `Bearer ${'x'.repeat(10_000)}`,
    'Bearer __proto__',
    'Bearer constructor',
  ];
  for (const header of wrong) {
    const { challenge, detail } = refusal(header);
    assert.equal(challenge, 'Bearer realm="sluice", error="invalid_token"', header);
    assert.doesNotMatch(detail + challenge, /alice|mallory|xxx|[0-9a-f]{16}/, header);
  }
});

test('all faults of the file are reported at once with their line numbers, without its contents', () => {
  const digest = 'sha256: expected the SHA-256 of the key, 64 hexadecimal digits';
  const name = 'name: expected the name of the client, 1 to 64 characters of A-Z a-z 0-9 . _ -';
  const lines: [line: string, fault: string | null][] = [
    [`carol ${sha256('c')}`, null],
    ['secretkey', digest],
    [`dave ${sha256('d')} extra`, digest],
    ['# comment', null],
    [`da/ve ${sha256('e')}`, name],
    [`${'n'.repeat(65)} ${sha256('f')}`, name],
    ['erin plainsecretkey', digest],
    [`frank ${sha256('g').slice(1)}`, digest],
    ['', null],
    [`ivan #${sha256('h')}`, digest],
  ];
  const { faults } = parseKeys(lines.map(([line]) => line).join('\n'));
  const expected = lines.flatMap(([, fault], i) => (fault ? [`API_KEYS_FILE line ${i + 1} ${fault}`] : []));
  assert.deepEqual(faults, expected);
  assert.doesNotMatch(faults.join(), /secret|[0-9a-f]{20}/);
  const twice = [`carol ${sha256('c')}`, '', `carol ${sha256('c').toUpperCase()}`];
  assert.deepEqual(parseKeys(twice.join('\n')).faults, [
    'API_KEYS_FILE line 3 sha256: line 1 has the same key',
  ]);
});

test('a file that is missing, is a directory or has no key stops the start', async (t) => {
  const folder = await temporaryFolder(t);
  assert.match(
    readKeysFile(join(folder, 'none')).faults.join(),
    /^API_KEYS_FILE must be a readable file.*ENOENT/,
  );
  assert.match(readKeysFile(folder).faults.join(), /^API_KEYS_FILE must be a readable file.*EISDIR/);
  const path = join(folder, 'keys');
  writeFileSync(path, '# no keys yet\n');
  assert.deepEqual(readKeysFile(path).faults, [
    'API_KEYS_FILE must have at least one key; otherwise every request is refused',
  ]);
  writeFileSync(path, `\ufeff${FILE}`);
  assert.deepEqual(readKeysFile(path).faults, []);
  assert.deepEqual(
    readKeysFile(path).keys.map(({ name }) => name),
    ['alice', 'bob', 'alice'],
  );
});
