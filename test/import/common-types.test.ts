import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCommonCell, writeCommonType } from '../../src/import/common-types.ts';
import { DocumentWriter, nameBytes } from '../../src/import/document-writer.ts';
import { writeKind } from '../../src/import/kinds.ts';
import { BSON, ObjectId } from '../../src/store/values/bson.ts';
import fc from '../support/fast-check.ts';

const NAME = nameBytes('v');
const BEFORE = '[1, ';

/** The value that is read of a text behind others, and the bytes behind it. null: it is left to the reader of any value. */
function read(text: string): { readonly value: unknown; readonly behind: string } | null {
  const row = Buffer.from(BEFORE + text);
  const writer = new DocumentWriter();
  writer.begin();
  const end = writeCommonType(writer, NAME, row, BEFORE.length);
  if (end === BEFORE.length) return null;
  const { v } = BSON.deserialize(writer.end());
  return { value: v, behind: row.toString('latin1', end) };
}

const number = (least: number, most: number, digits: number): fc.Arbitrary<string> =>
  fc.integer({ min: least, max: most }).map((value) => String(value).padStart(digits, '0'));
const day = fc
  .date({ min: new Date('0100-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString().slice(0, 10));
const time = fc.tuple(number(0, 23, 2), number(0, 59, 2), number(0, 59, 2)).map((parts) => parts.join(':'));
const fraction = fc
  .option(number(0, 999, 3), { nil: null })
  .map((digits) => (digits === null ? '' : `.${digits}`));
const hexadecimal = fc.stringMatching(/^[0-9a-fA-F]{24}$/);
const frequent = fc.oneof(
  fc.tuple(day, time, fraction).map(([on, at, and]) => `{"$date":"${on}T${at}${and}Z"}`),
  hexadecimal.map((id) => `{"$oid":"${id}"}`),
);

test('frequent values of Extended JSON are those that the parser of bson reads', () => {
  fc.assert(
    fc.property(frequent, (text) => {
      const { v }: { v?: unknown } = BSON.deserialize(
        BSON.serialize({ v: BSON.EJSON.parse(text) as unknown }),
      );
      assert.deepEqual(read(`${text}, 2]`), { value: v, behind: ', 2]' });
    }),
    { numRuns: 2_000 },
  );
});

test('the days of each month are those of the calendar, in years with a 29th of February and in others', () => {
  for (const year of ['1900', '2000', '2023', '2024'])
    for (let n = 0; n < 12 * 33; n++) {
      const text = `${year}-${String(Math.floor(n / 33) + 1).padStart(2, '0')}-${String(n % 33).padStart(2, '0')}`;
      const date = new Date(`${text}T01:02:03Z`);
      const isDay = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
      const expected = isDay ? { value: date, behind: '' } : null;
      assert.deepEqual(read(`{"$date":"${text}T01:02:03Z"}`), expected, text);
    }
});

test('other values, cut ones and those of days and times that are not are left to the reader of any value', () => {
  const id = '65a1b2c3d4e5f60718293a4b';
  const time = (text: string) => `{"$date":"${text}"}`;
  const others = [
    ...['2023-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2024-04-31T00:00:00Z', '2024-13-01T00:00:00Z'],
    ...['2024-00-01T00:00:00Z', '2024-01-00T00:00:00Z', '2024-01-01T24:00:00Z', '2024-01-01T00:60:00Z'],
    ...['2024-01-01T00:00:60Z', '0099-01-01T00:00:00Z', '2024-01-01T00:00:00', '2024-01-01T00:00:00.1Z'],
    ...['2024-01-01T00:00:00.12Z', '2024-01-01T00:00:00.1234Z', '2024-01-01T00:00:00+01:00', '2024-01-01'],
    ...[
      '2024-01-01t00:00:00Z',
      '2024-01-01T00:00:00.12aZ',
      '+002024-01-01T00:00:00Z',
      '2024/01/01T00:00:00Z',
      '',
    ],
  ].map(time);
  others.push(
    `{"$oid":"${id}","a":1}`,
    `{"$oid": "${id}"}`,
    `{"$oid":"${id.slice(1)}"}`,
    `{"$oid":"${id}0"}`,
  );
  others.push(
    `{"$oid":"${id.replace('f', 'g')}"}`,
    `{"$oid":"-${id.slice(1)}"}`,
    `{"$oid":" ${id.slice(1)}"}`,
  );
  for (const whole of [`{"$oid":"${id}"}`, time('2024-01-01T00:00:00.000Z'), time('2024-01-01T00:00:00Z')])
    for (let end = 0; end < whole.length; end++) others.push(whole.slice(0, end));
  for (const text of others) assert.equal(read(text), null, text);
});

test('cells of CSV in these forms are what the reader of any cell makes of them, and others are left to it', () => {
  const written = (kind: 'date' | 'objectid', cell: string, isFast: boolean): unknown => {
    const bytes = Buffer.from(`1,${cell},2`);
    const writer = new DocumentWriter();
    writer.begin();
    const isWritten = writeCommonCell(writer, NAME, kind, { bytes, from: 2, to: bytes.length - 2 }, {});
    assert.equal(isWritten, isFast, cell);
    if (!isFast) assert.equal(writer.offset, 4, 'nothing is written');
    else return BSON.deserialize(writer.end()).v;
    writeKind(writer, NAME, cell, kind, {});
    return BSON.deserialize(writer.end()).v;
  };
  fc.assert(
    fc.property(frequent, (text) => {
      const { v }: { v?: unknown } = BSON.deserialize(
        BSON.serialize({ v: BSON.EJSON.parse(text) as unknown }),
      );
      const [, kind = '', cell = ''] = /"\$(date|oid)":"([^"]*)"/.exec(text) ?? [];
      assert.deepEqual(written(kind === 'oid' ? 'objectid' : 'date', cell, true), v);
    }),
  );
  for (const cell of ['2024-01-01', ' 2024-01-01T00:00:00Z', '2024-01-01T00:00:00+01:00'])
    assert.ok(written('date', cell, false) instanceof Date);
  assert.ok(written('objectid', ' 65a1b2c3d4e5f60718293a4b ', false) instanceof ObjectId);
});
