import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import { parse } from 'csv-parse/sync';
import { jsonNumber, numberOfCell, simpleNumber } from '../../src/import/numbers.ts';
import type { Kind } from '../../src/import/kinds.ts';
import type { Columns } from '../../src/import/fields.ts';
import { itemToJson } from '../support/rows/item-json.ts';
import { COLUMNS, read } from '../support/import/import-reading.ts';
import { below, oneOf, randomFrom } from '../support/store/random-collection.ts';
import { NAMES, randomCsv } from '../support/import/random-csv.ts';
import { RandomLines } from '../support/import/random-json.ts';
import { SEED } from '../support/seed.ts';

const ROUNDS = process.env.LONG === '1' ? 5_000 : 15;
const LINES = 100;
const ROWS: Columns = { category: null, price: null, id: null };
/** Reasons for which a row that is JSON cannot be stored. */
const NOT_STORED =
  /the field name|half of a surrogate pair|deeper than 32|too large|all its digits|Extended JSON|not a JSON object|^\d+: the (id|price|category) |has no (category|price|field)|no longer used/;

type Json = null | string | number | boolean | Json[] | { [name: string]: Json };

/** A value as the server shows it. undefined: it has Extended JSON of rare types. */
function shown(value: Json): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value.$oid === 'string') return value.$oid.toLowerCase();
  if (typeof value.$date === 'string') return new Date(value.$date).toISOString();
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shown(inner)]));
}

/** The row that JSON.parse finds in a text, as a resource without an id of its own shows it. null: it is not JSON. */
function parsed(text: Buffer): { readonly row: unknown } | null {
  if (!isUtf8(text)) return null;
  try {
    const value = JSON.parse(text.toString()) as Json;
    return {
      row: value !== null && typeof value === 'object' && !Array.isArray(value) ? shown(value) : null,
    };
  } catch {
    return null;
  }
}

/** The row of a document, without its id. */
function row(document: Uint8Array): unknown {
  const fields = JSON.parse(itemToJson(document)) as Record<string, unknown>;
  const key = Object.hasOwn(fields, '_id') ? '_id' : 'id'; // a row with a field id shows its key as _id
  assert.ok(Object.hasOwn(fields, key));
  delete fields[key]; // eslint-disable-line @typescript-eslint/no-dynamic-delete -- it is one of two names
  return fields;
}

test('JSON lines and elements of arrays are what JSON.parse makes of them, or bad rows', async () => {
  let good = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const where = `seed ${SEED + round}`;
    const random = randomFrom(SEED + round);
    const source = new RandomLines(random);
    const lines = Array.from({ length: LINES }, () => source.next()).filter((line) => !line.includes(0x0a));
    const columns = { ...ROWS, id: '_id' };
    // A name of its own for the id leaves all other fields as they are.
    const texts = lines.map((line) =>
      line.toString('latin1').includes('"_id"')
        ? line
        : Buffer.from(
            line
              .toString('latin1')
              .replace('{', `{"_id":${round}${/^\s*\{\s*\}/.test(line.toString('latin1')) ? '' : ','}`),
            'latin1',
          ),
    );
    const content = Buffer.concat(texts.flatMap((line) => [line, Buffer.from('\n')]));
    const chunk = 1 + below(random, oneOf(random, [300, 10_000]));
    const got = await read(content, 'ndjson', { columns, chunk });
    assert.equal(got.error, undefined, where);
    const reasons = new Map(got.bad.map((text) => [Number(text.split(':', 1)[0]), text]));
    const elements: Buffer[] = [];
    let next = 0;
    for (const [n, text] of texts.entries()) {
      if (/^[ \t\r]*$/.test(text.toString('latin1'))) continue;
      const reason = reasons.get(n + 1);
      const found = parsed(text);
      const about = `${where}: ${text.toString()}`;
      if (!found) {
        assert.match(
          reason ?? '',
          /not valid JSON|not valid UTF-8|the field name|surrogate|deeper|too large|all its digits|Extended JSON|no longer used/,
          about,
        );
        continue;
      }
      elements.push(text);
      if (reason !== undefined) {
        assert.match(reason, NOT_STORED, about);
        continue;
      }
      const document = got.documents[next++] ?? assert.fail();
      const expected = found.row as Record<string, unknown>;
      const rare = /"\$(?!oid|date)/.test(text.toString()) || /\{"\$date":\s*[{\d]/.test(text.toString());
      const { _id, ...fields } = expected;
      if (!rare) assert.deepEqual(row(document), JSON.parse(JSON.stringify(fields)), about); // no -0
      assert.notEqual(_id, undefined);
      good++;
    }
    assert.equal(next, got.documents.length, where);
    const array = Buffer.concat([
      Buffer.from(' ['),
      ...elements.flatMap((text, n) => [Buffer.from(n ? ',' : ''), text]),
      Buffer.from(']\n'),
    ]);
    const again = await read(array, 'json', { columns, chunk });
    assert.equal(again.error, undefined, where);
    assert.deepEqual(
      again.documents.map((one) => Buffer.from(one)),
      got.documents.map((one) => Buffer.from(one)),
      where,
    );
    assert.equal(again.bad.length, elements.length - next, where);
  }
  assert.ok(good > (ROUNDS * LINES) / 4, `${good} good rows`);
});

test('A short number in bytes is read as the number that its text is', () => {
  const random = randomFrom(SEED);
  const characters = '0123456789012345678901234567890123456789.....--e+ ';
  for (let n = 0; n < 50_000; n++) {
    const length = below(random, 18);
    const text = Array.from({ length }, () => characters[below(random, characters.length)]).join('');
    const value = simpleNumber(Buffer.from(` ${text},`), 1, 1 + length);
    if (Number.isNaN(value)) continue;
    assert.ok(Object.is(value, Number(text)), text);
    assert.ok(Object.is(value, JSON.parse(text)), text);
    assert.ok(Object.is(value, jsonNumber(text)), text);
    assert.ok(Object.is(value, numberOfCell(text)), text);
  }
});

/** The number of line ends as an editor counts them. */
function lineEnds(bytes: Buffer): number {
  return bytes.toString('latin1').split(/\r\n|\n|\r/).length - 1;
}

/** The rows that csv-parse finds under a header: a line and its fields, or what is wrong. */
function parsedRows(content: Buffer, header: readonly string[]) {
  const options = {
    record_delimiter: ['\r\n', '\n', '\r'],
    skip_empty_lines: true,
    relax_column_count: true,
  };
  const records = parse(content, {
    ...options,
    info: true,
    relax_quotes: true,
    cast: (cell, { quoting }) => (!quoting && cell === '' ? null : cell),
  }) as unknown as { record: (string | null)[]; info: { bytes: number } }[];
  let from = 0;
  return records
    .map(({ record: cells, info: { bytes: to } }) => {
      while (content[from] === 0x0a || content[from] === 0x0d) from++;
      const line = 1 + lineEnds(content.subarray(0, from));
      const raw = content.subarray(from, to);
      from = to;
      const fault = faultOf(cells, raw);
      const fields = header.flatMap((name, index) =>
        (cells[index] ?? null) === null ? [] : [[name, cells[index]] as const],
      );
      return { line, ...(fault === null ? { fields: Object.fromEntries(fields) } : { fault }) };
    })
    .slice(1);

  function faultOf(cells: readonly (string | null)[], raw: Buffer): string | null {
    try {
      parse(raw, options);
    } catch {
      return 'quote';
    }
    return cells.length !== header.length ? 'cells' : isUtf8(raw) ? null : 'UTF-8';
  }
}

test('Rows, lines and faults of CSV are those that csv-parse finds', async () => {
  let good = 0;
  let bad = 0;
  for (let round = 0; round < ROUNDS * 4; round++) {
    const where = `seed ${SEED + round}`;
    const random = randomFrom(SEED + round);
    const header = NAMES.slice(1 + below(random, 6));
    const marked = randomCsv(random, header, below(random, 60), oneOf(random, [0, 0, 0.01, 0.1, 0.4]));
    const content = marked.subarray(marked.indexOf('\ufeff') === 0 ? 3 : 0);
    // csv-parse takes a NUL behind a closing quote for the end of the cell.
    for (let at = content.indexOf(0); at >= 0; at = content.indexOf(0)) content[at] = 0x41;
    const chunk = 1 + below(random, oneOf(random, [20, 300, 3_000]));
    const types = new Map(header.map((name): [string, Kind] => [name, 'string']));
    const reading = { columns: ROWS, types, chunk, delimiter: ',' };
    const got = await read(content, 'csv', reading);
    let expected: ReturnType<typeof parsedRows>;
    try {
      expected = parsedRows(content, header);
    } catch {
      assert.match(got.bad.at(-1) ?? String(got.error), /quote is not closed before the end/, where);
      continue;
    }
    assert.equal(got.error, undefined, where);
    const rows = expected.filter((one) => 'fields' in one);
    assert.deepEqual(
      got.documents.map(row),
      rows.map(({ fields }) => ({ ...fields })),
      where,
    );
    const faults = expected.filter((one) => 'fault' in one);
    assert.equal(got.bad.length, faults.length, where);
    for (const [n, { line, fault }] of faults.entries())
      assert.match(
        got.bad[n] ?? '',
        new RegExp(`^${line}: .*${fault}`),
        `${where}: ${JSON.stringify(content.toString())}`,
      );
    good += rows.length;
    bad += faults.length;
  }
  assert.ok(good > ROUNDS * 20 && bad > ROUNDS, `${good} good rows and ${bad} bad ones`);
});

test('The scan of a file and that of a pipe find the same kinds and items in random tables', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const where = `seed ${SEED + round}`;
    const random = randomFrom(SEED + round);
    const content = randomCsv(random, NAMES, 1 + below(random, 40), oneOf(random, [0, 0.02, 0.2]));
    const [whole, pieces, file] = await Promise.all([
      read(content, 'csv', { columns: COLUMNS }),
      read(content, 'csv', { columns: COLUMNS, chunk: 1 + below(random, 50) }),
      read(content, 'csv', { columns: COLUMNS, isFile: true, chunk: 1 + below(random, 50) }),
    ]);
    assert.deepEqual(outcomeOf(pieces), outcomeOf(whole), where);
    assert.deepEqual(outcomeOf(file), outcomeOf(whole), where);
  }

  function outcomeOf({ documents, bad, described, error }: Awaited<ReturnType<typeof read>>) {
    return { documents: documents.map((one) => Buffer.from(one)), bad, described, error: error?.message };
  }
});
