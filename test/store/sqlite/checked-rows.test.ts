import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Decimal128, Int32 } from '../../../src/store/bson.ts';
import { compareValues } from '../../../src/store/order.ts';
import { DamagedRowError, rowWalkIn, sortPath, storedRow } from '../../../src/store/sqlite/checked-rows.ts';
import { Slots } from '../../../src/store/slots.ts';
import { PLENTY } from '../../support/store/reading.ts';

const PATH = sortPath({ sort: 'total' });
const slots = new Slots();
const walk = rowWalkIn(slots);

/** How a walk takes two rows one behind the other: in order, out of order, or not compared. */
function orderOf(totals: readonly [Decimal128, Decimal128]): 'right' | 'wrong' | 'unsure' {
  const rows = Buffer.concat(
    totals.map((total, n) => storedRow(BSON.serialize({ _id: new Int32(n), total }))),
  );
  const slot = slots.take(rows.length + PATH.length);
  slot.bytes().set(rows);
  slot.bytes().set(PATH, rows.length);
  try {
    const { isUnsure } = walk(slot, rows.length, PATH.length, { rows: 2, bytes: PLENTY }, 1);
    return isUnsure ? 'unsure' : 'right';
  } catch (error) {
    if (error instanceof DamagedRowError) return 'wrong';
    throw error;
  } finally {
    slot.release();
  }
}

test('decimals of any exponents are compared as every store orders them', () => {
  const digits = ['0', '1', '5', '10', '99', '1250', '922337203685477580', '9223372036854775807'];
  const exponents = [-20, -19, -3, -2, -1, 0, 1, 18];
  const all = digits.flatMap((text) =>
    exponents.flatMap((exponent) =>
      ['', '-'].map((sign) => Decimal128.fromString(`${sign}${text}E${exponent}`)),
    ),
  );
  let unsure = 0;
  for (const one of all)
    for (const other of all) {
      const order = orderOf([one, other]);
      if (order === 'unsure') unsure++;
      // Equal values are in order of their ids.
      else if ((order === 'right') !== compareValues(one, other) <= 0)
        assert.fail(`${one.toString()} ${other.toString()}: ${order}`);
    }
  assert.ok(unsure < all.length ** 2 / 2, `${unsure} were not compared`);
});

test('amounts of money are all compared', () => {
  const amounts = ['-0.01', '0', '0.07', '0.1', '0.10', '1', '12.5', '1E3', '4999.99', '5000'].map((text) =>
    Decimal128.fromString(text),
  );
  for (const [n, one] of amounts.entries())
    for (const [m, other] of amounts.entries())
      assert.equal(
        orderOf([one, other]),
        n <= m || compareValues(one, other) === 0 ? 'right' : 'wrong',
        `${one.toString()} ${other.toString()}`,
      );
});
