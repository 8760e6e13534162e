import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foundInPieces, type Piece } from '../../src/import/chunks.ts';
import { CsvScanner, type CsvRecord } from '../../src/import/csv-scanner.ts';
import { ByteScanner } from '../support/import/byte-scanner.ts';
import { below, oneOf, randomFrom, type Random } from '../support/store/random-collection.ts';
import { SEED } from '../support/seed.ts';

const ROUNDS = process.env.LONG === '1' ? 20_000 : 400;
/** A piece that is looked through in several parts. Bytes. */
const LONG_BYTES = 200_000;
/** Pieces of contents, beside any byte: what cuts a table, and characters of UTF-8, whole and broken. */
const PARTS = [
  ...[',', ',', ';', '"', '""', '\n', '\r', '\r\n', '\n\n', '","', '"\n', '\r"', 'a', ' ', 'NA', '\0'],
  ...['é', '字', '𝄞', 'some text', 'x'.repeat(40)],
].map((text) => Buffer.from(text));
const BROKEN = [0x80, 0xff, 0xc3, 0xe5, 0xf0, 0xa7].map((byte) => Buffer.of(byte));
/** `\u00a7` is one byte in no UTF-8, and `\u012c` none at all: its low byte is a comma. */
const DELIMITERS = [',', ',', ',', ';', '\t', '"', '\u00a7', '\u012c'];

/** All that a reader may ask of a record, as a text. */
function shown(record: CsvRecord): string {
  const { bytes, starts, ends, hasQuotes, line, fault } = record;
  const cells = Array.from({ length: record.cells }, (_, n) => [
    bytes.toString('latin1', starts[n], ends[n]),
    hasQuotes[n],
    record.isMissing(n),
    record.text(n),
  ]);
  return JSON.stringify({ line, fault, cells });
}

/** The records that `read` finds in a content that comes in random chunks. */
async function recordsOf(
  content: Buffer,
  random: Random,
  longest: number,
  read: (piece: Piece, found: string[]) => void,
): Promise<readonly string[]> {
  const chunks: Buffer[] = [];
  for (let at = 0; at < content.length;) {
    const to = at + 1 + below(random, longest);
    chunks.push(content.subarray(at, to));
    at = to;
  }
  const records: string[] = [];
  // eslint-disable-next-line @typescript-eslint/require-await -- a source is read asynchronously
  const source = (async function* () {
    yield* chunks;
  })();
  for await (const found of foundInPieces(source, read)) records.push(...found);
  return records;
}

function contentOf(random: Random): Buffer {
  const parts = random() < 0.5 ? PARTS : [...PARTS, ...BROKEN];
  const count = below(random, oneOf(random, [10, 60, 400]));
  const content = Array.from({ length: count }, () => oneOf(random, parts));
  if (random() < 0.05)
    content.splice(below(random, count), 0, Buffer.alloc(LONG_BYTES, oneOf(random, parts)));
  return Buffer.concat(content);
}

test('A scanner finds in any bytes, cut anywhere, the records that a look at each byte finds', async () => {
  let good = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const random = randomFrom(SEED + round);
    const content = contentOf(random);
    const dialect = {
      delimiter: oneOf(random, DELIMITERS),
      missing: oneOf(random, [[], ['NA', 'a']]),
      line: oneOf(random, [1, 7]),
    };
    const isCut = random() < 0.3;
    const scanner = new CsvScanner(dialect);
    const byBytes = new ByteScanner(dialect);
    const longest = content.length > LONG_BYTES ? LONG_BYTES : oneOf(random, [1, 3, 40, 1_000]);
    const found = await recordsOf(content, random, longest, (piece, records) => {
      scanner.begin(piece.bytes, piece.isLast && !isCut);
      while (scanner.next()) records.push(shown(scanner));
      piece.rest = scanner.end();
    });
    const expected = await recordsOf(content, random, longest, (piece, records) => {
      for (const record of byBytes.records(piece, piece.isLast && !isCut)) records.push(shown(record));
    });
    assert.deepEqual(found, expected, `seed ${SEED + round}`);
    good += found.filter((record) => record.includes('"fault":null')).length;
  }
  assert.ok(good > ROUNDS, `${good} good records`);
});

test('A quote that is not closed is no row of 16 MB', () => {
  const scanner = new CsvScanner({ delimiter: ',', missing: [] });
  scanner.begin(Buffer.concat([Buffer.from('a,b\n1,"'), Buffer.alloc(16 * 1024 * 1024, 'x\n')]), false);
  assert.ok(scanner.next());
  assert.ok(!scanner.next());
  assert.throws(() => scanner.end(), /the row on line 2 is longer than 16 MB/);
});
