import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from '../support/fast-check.ts';
import { addressFromBytes, addressFromText } from '../../src/engine/address.ts';

describe("a peer's address", () => {
  it('of 16 bytes is written as RFC 5952 requires and as the URL parser writes it', () => {
    const byte = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        fc.array(byte, { minLength: 16, maxLength: 16 }),
        (dense, sparse) => {
          for (const bytes of [dense, Uint8Array.from(sparse)]) {
            const groups = Array.from({ length: 8 }, (_, i) =>
              Buffer.from(bytes).toString('hex', 2 * i, 2 * i + 2),
            );
            const expected = new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
            if (!expected.startsWith('::ffff:')) assert.equal(addressFromBytes(bytes), expected);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('is the same for IPv4 and for IPv4 mapped into IPv6, in bytes and in text', () => {
    const mapped = Buffer.from('00000000000000000000ffff7f000001', 'hex');
    assert.equal(addressFromBytes(mapped), '127.0.0.1');
    assert.equal(addressFromBytes(mapped.subarray(12)), '127.0.0.1');
    assert.equal(addressFromText('::ffff:127.0.0.1'), '127.0.0.1');
    assert.equal(addressFromText('127.0.0.1'), '127.0.0.1');
    assert.equal(addressFromText('fe80::1%eth0'), 'fe80::1');
    assert.equal(addressFromText(undefined), '');
  });
});
