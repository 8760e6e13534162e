import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import { elementOf, documentWith } from '../../../src/store/values/bson-elements.ts';
import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { MongoConnection } from '../../../src/store/mongo/connection.ts';
import { textAbove } from '../../../src/store/mongo/read/next-value.ts';
import { writeRaw } from '../../../src/store/mongo/write/raw-write.ts';
import fc, { anyCharacter } from '../../support/fast-check.ts';
import { serverOn } from '../../support/process/server.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { testMongo } from '../../support/store/mongo/mongod.ts';

/** Bytes that begin, continue, or end characters, or cannot be in one. */
const byte = fc.constantFrom(0, 0x61, 0x7f, 0x80, 0xbf, 0xc3, 0xe0, 0xed, 0xa0, 0xef, 0xf0, 0xf4, 0x8f, 0xff);
const someBytes = fc.array(byte, { maxLength: 6 }).map((bytes) => Buffer.from(bytes));

test('the text to go on with behind bytes that are not UTF-8 is above them, and none lies between', () => {
  const text = fc.string({ unit: anyCharacter, maxLength: 4 });
  fc.assert(
    fc.property(someBytes, someBytes, text, (bytes, other, any) => {
      fc.pre(!isUtf8(bytes));
      const above = textAbove(bytes);
      if (above !== null) assert.ok(Buffer.compare(Buffer.from(above), bytes) > 0);
      const near = bytes.subarray(0, other.length % bytes.length);
      for (const one of [Buffer.from(any), other, Buffer.concat([near, Buffer.from(any)])]) {
        if (!isUtf8(one) || Buffer.compare(one, bytes) < 0) continue;
        assert.ok(above !== null && Buffer.compare(Buffer.from(above), one) <= 0);
      }
    }),
    { numRuns: 2_000 },
  );
  assert.equal(textAbove(Buffer.of(0xff)), null);
  assert.equal(textAbove(Buffer.from('a\xff', 'latin1')), 'b');
  assert.equal(textAbove(Buffer.of(0xf4, 0x8f, 0xbf, 0xbf, 0xff)), null);
});

/** A value, as type and bytes. Those that are listed have a text, as rows show them. */
interface Odd {
  readonly type: number;
  readonly bytes: Buffer;
  readonly shown?: string;
}

const textOf = (bytes: string, shown?: string): Odd => {
  const text = Buffer.concat([Buffer.alloc(4), Buffer.from(bytes, 'latin1'), Buffer.alloc(1)]);
  text.writeInt32LE(text.length - 4);
  return { type: BSON_TYPE.string, bytes: text, ...(shown !== undefined && { shown }) };
};
const dateOf = (ms: bigint, shown?: string): Odd => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(ms);
  return { type: BSON_TYPE.date, bytes, ...(shown !== undefined && { shown }) };
};
const one = (type: number, hex: string, shown?: string): Odd => {
  return { type, bytes: Buffer.from(hex, 'hex'), ...(shown !== undefined && { shown }) };
};
const TWICE = '13000000' + '106100' + '01000000' + '106100' + '02000000' + '00';

/** In BSON order. Each that is left out is a stretch of its own. */
const VALUES: readonly Odd[] = [
  one(BSON_TYPE.minKey, ''),
  one(BSON_TYPE.undefined, ''),
  one(BSON_TYPE.null, '', 'null'),
  one(BSON_TYPE.int32, '07000000', '7'),
  textOf('a', '"a"'),
  textOf('a\xff'),
  textOf('ab', '"ab"'),
  one(BSON_TYPE.symbol, '0300000061' + '6300', '{"$symbol":"ac"}'),
  textOf('b\xc3'),
  textOf('b\xc3\xa9', '"bé"'),
  textOf('\xff'),
  one(BSON_TYPE.document, '0c0000001061000000000000', '{"a":0}'),
  one(BSON_TYPE.document, TWICE),
  one(BSON_TYPE.boolean, '01', 'true'),
  dateOf(-(2n ** 63n)),
  dateOf(0n, '"1970-01-01T00:00:00.000Z"'),
  dateOf(8_640_000_000_000_001n),
  one(BSON_TYPE.regularExpression, '6100' + '00'),
  one(BSON_TYPE.dbPointer, '0200000061' + '00' + '000102030405060708090a0b'),
  one(BSON_TYPE.maxKey, ''),
];

/** What is listed of some values, and where values are left out, which may be next to each other. */
const expectedOf = (values: readonly Odd[]) => ({
  shown: values.flatMap(({ shown }) => shown ?? []),
  omitted: values.filter(({ shown }) => shown === undefined).length,
});

interface Listed {
  readonly data: readonly { readonly value: unknown }[];
  readonly omitted: number;
  readonly page: { readonly hasMore: boolean; readonly nextCursor: string | null };
}

for (const sign of [1, -1] as const)
  test(`a list goes on behind values that no filter can name, and counts them (index ${sign})`, async (t) => {
    const uri = await testMongo(t);
    if (uri === null) return;
    const rows = testClient(t, uri).db().collection('odd');
    await rows.createIndex({ v: sign, _id: sign });
    const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'odd' });
    const connection = new MongoConnection(uri);
    t.after(() => connection.close());
    const list = async (limit: number) => {
      const found: string[] = [];
      let omitted = 0;
      let cursor = '';
      for (let pages = 0; ; pages++) {
        assert.ok(pages <= VALUES.length);
        const response = await server.get(`/odd/values?field=v&limit=${limit}${cursor}`);
        assert.equal(response.status, 200, await response.clone().text());
        const { data, page, ...more } = (await response.json()) as Listed;
        found.push(...data.map(({ value }) => JSON.stringify(value)));
        omitted += more.omitted;
        if (!page.hasMore) return { shown: found, omitted };
        assert.equal(data.length, limit);
        cursor = `&cursor=${page.nextCursor}`;
      }
    };
    const write = async (values: readonly Odd[]) => {
      await rows.deleteMany({});
      const some = [0, 1].flatMap((twin) =>
        values.map(({ type, bytes }, n) =>
          documentWith(BSON.serialize({ _id: n * 2 + twin }).subarray(4, -1), elementOf(type, 'v', bytes)),
        ),
      );
      assert.deepEqual((await writeRaw(connection, 'odd', 'insert', some)).errors, []);
    };
    await write(VALUES);
    for (const limit of [1, 2, 5, 100]) assert.deepEqual(await list(limit), expectedOf(VALUES));
    for (const left of VALUES.filter(({ shown }) => shown === undefined)) {
      await write([left]);
      assert.deepEqual(await list(1), { shown: [], omitted: 1 });
    }
  });
