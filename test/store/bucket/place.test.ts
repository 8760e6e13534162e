import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readFilesPlace } from '../../../src/store/bucket/place.ts';
import { temporaryFolder } from '../../support/directory.ts';

const KEYS = { S3_ACCESS_KEY_ID: 'the-id', S3_SECRET_ACCESS_KEY: 'the-secret' };

/** FILES, and the URL of the bucket and the beginning of the keys there. */
const PLACES: readonly [string, string, string][] = [
  ['s3://some-bucket', 'https://s3.us-east-1.amazonaws.com/some-bucket', ''],
  ['s3://some-bucket/?region=eu-central-1', 'https://s3.eu-central-1.amazonaws.com/some-bucket', ''],
  [
    's3://some.bucket/a/b_c=1/?endpoint=https://h.example:9000',
    'https://h.example:9000/some.bucket',
    'a/b_c=1/',
  ],
  [
    's3://some-bucket/a?endpoint=http%3A%2F%2F127.0.0.1%3A9%2Fbase%2F',
    'http://127.0.0.1:9/base/some-bucket',
    'a/',
  ],
  ['s3://some-bucket?endpoint=https://some-bucket.h.example', 'https://some-bucket.h.example/', ''],
];

test('a place in a bucket is bucket, prefix, endpoint and region', () => {
  for (const [FILES, url, prefix] of PLACES) {
    const { place, faults } = readFilesPlace({ FILES, ...KEYS });
    assert.deepEqual(faults, [], FILES);
    assert.ok(place?.kind === 'bucket');
    assert.equal(place.url.href, url);
    assert.equal(place.prefix, prefix);
    assert.deepEqual(place.credentials(), { accessKeyId: 'the-id', secretAccessKey: 'the-secret' });
  }
  assert.deepEqual(readFilesPlace({ FILES: 'file:///srv/a%20b' }).place, {
    kind: 'folder',
    path: '/srv/a b',
  });
  assert.equal(readFilesPlace({}).place, null);
});

test('what cannot be a place is refused by the name of its setting, and shows no secret', () => {
  const wrong: readonly [Record<string, string>, string][] = [
    ...[
      ...[
        'bucket',
        '/srv/files',
        'http://h/x',
        'file://host/x',
        'file:///',
        'file:srv',
        's3:',
        's3://',
        's3://ab',
        's3://A_b',
      ],
      ...[
        's3://me:hidden@some-bucket',
        's3://some-bucket/a/b c',
        's3://some-bucket/a?secret=hidden',
        's3://some-bucket/a%2Fb',
      ],
      ...['s3://some-bucket?region=', 's3://some-bucket?region=a/b', 's3://some-bucket?endpoint=h.example'],
      ...[
        's3://some-bucket?endpoint=https://a:hidden@h',
        's3://some-bucket?endpoint=https://h/?x=1',
        's3://some-bucket#x',
      ],
    ].map((FILES): [Record<string, string>, string] => [{ FILES, ...KEYS }, 'FILES']),
    [{ FILES: 's3://some-bucket', S3_ACCESS_KEY_ID: 'hidden' }, 'S3_SECRET_ACCESS_KEY'],
    [{ FILES: 's3://some-bucket', S3_SECRET_ACCESS_KEY: 'hidden' }, 'S3_ACCESS_KEY_ID'],
    [{ FILES: 's3://some-bucket', ...KEYS, S3_SESSION_TOKEN_FILE: '/nowhere' }, 'S3_SESSION_TOKEN_FILE'],
    [{ FILES: 's3://some-bucket', ...KEYS, S3_ACCESS_KEY_ID_FILE: '/nowhere' }, 'S3_ACCESS_KEY_ID'],
  ];
  for (const [given, setting] of wrong) {
    const { place, faults } = readFilesPlace(given);
    assert.equal(place, null, JSON.stringify(given));
    assert.ok(
      faults.length > 0 && faults.every((fault) => fault.startsWith(setting)),
      `${JSON.stringify(given)}: ${faults.join()}`,
    );
    assert.doesNotMatch(faults.join(), /hidden|the-secret/);
  }
});

test('credentials of files are the first lines as they are when they are asked for', async (t) => {
  const folder = await temporaryFolder(t);
  const [id, secret, token] = ['id', 'secret', 'token'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(id, 'one\n');
  await writeFile(secret, '  two  \nmore\n');
  await writeFile(token, 'three');
  const given = {
    S3_ACCESS_KEY_ID_FILE: id,
    S3_SECRET_ACCESS_KEY_FILE: secret,
    S3_SESSION_TOKEN_FILE: token,
  };
  const { place, faults } = readFilesPlace({ FILES: 's3://some-bucket', ...given });
  assert.deepEqual(faults, []);
  assert.ok(place?.kind === 'bucket');
  assert.deepEqual(place.credentials(), {
    accessKeyId: 'one',
    secretAccessKey: 'two',
    sessionToken: 'three',
  });
  await writeFile(token, 'four');
  assert.equal(place.credentials().sessionToken, 'four');
  await writeFile(secret, '\n');
  assert.throws(
    () => place.credentials(),
    /^Error: S3_SECRET_ACCESS_KEY_FILE names a file whose first line is empty$/,
  );
});
