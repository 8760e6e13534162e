import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { CheckedPage } from '../../src/load/page-check.ts';

const PAGE = Buffer.from('{"data":[],"page":{"limit":10,"hasMore":false}}');

function faultOf(bytes: Uint8Array, coding: string): string | null {
  const page = new CheckedPage('/items?limit=10');
  page.add(Buffer.from(bytes));
  return page.fault(coding);
}

test('A compressed page is whole, and nothing follows it', () => {
  for (const [coding, packed] of [
    ['br', brotliCompressSync(PAGE)],
    ['gzip', gzipSync(PAGE)],
  ] as const) {
    assert.equal(faultOf(packed, coding), null);
    for (const behind of ['\0\0\0', '\0more'])
      assert.match(
        faultOf(Buffer.concat([packed, Buffer.from(behind)]), coding) ?? '',
        new RegExp(`bytes follow behind the compressed ones, from byte ${packed.length}$`),
      );
    for (let cut = 0; cut < packed.length; cut++)
      assert.match(
        faultOf(packed.subarray(0, cut), coding) ?? '',
        /cannot be read/,
        `${coding} cut at ${cut}`,
      );
  }
});
