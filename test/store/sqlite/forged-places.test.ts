import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { insertItems, makeItems } from '../../support/store/items.ts';
import { NEVER } from '../../support/store/reading.ts';
import { openFor } from '../../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../../support/directory.ts';

/** The bytes of a token in which a place has a number of 8 bytes, see place.ts. */
const NUMBERS = { sequence: 13, seen: 21 };
const FORGED = [0n, 1n, 2n, 3n, 77n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n];

test('a forged place of changes is refused or read, and is never taken for damage of the file', async (t) => {
  const store = await openFor(t, await temporaryFolder(t));
  await insertItems(store.items, makeItems(3));
  const feed = store.items.changes ?? assert.fail('the embedded store has changes');
  const { token } = await feed.now(NEVER);
  const forged = FORGED.flatMap((sequence) =>
    FORGED.map((seen) => {
      const bytes = Buffer.from(token);
      bytes.writeBigUInt64BE(sequence, NUMBERS.sequence);
      bytes.writeBigUInt64BE(seen, NUMBERS.seen);
      return bytes;
    }),
  );
  const changed = Array.from(token, (byte, at) => Buffer.from(token).fill(byte ^ 0x41, at, at + 1));
  const cut = Array.from(token, (_, length) => Buffer.from(token.subarray(0, length)));
  const codes = new Set<string>();
  for (const place of [...forged, ...changed, ...cut]) {
    const read = feed.read({ token: place }, { most: 10, waitMs: 0 }, undefined, NEVER);
    const code = await read.then(
      () => 'read',
      (error: unknown) => (error instanceof AppError ? error.code : assert.fail(String(error))),
    );
    codes.add(code);
    assert.match(code, /^(read|invalid-cursor|changes-expired)$/, place.toString('hex'));
  }
  assert.deepEqual([...codes].sort(), ['changes-expired', 'invalid-cursor', 'read']);
  assert.deepEqual(await store.ping(), []);
  const { keys } = await feed.read({ token }, { most: 10, waitMs: 0 }, undefined, NEVER);
  assert.deepEqual(
    keys.map((key) => BSON.deserialize(key)),
    [],
  );
});
