import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { javascriptTranscoder, type TextTranscoder } from '../support/rows/javascript-transcoder.ts';
import { columnsOfFields } from '../../src/rows/csv-cell.ts';
import type { RowEncoder } from '../../src/rows/rows.ts';
import { policyFault, Selection } from '../../src/rows/selection.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import type { Batch } from '../../src/store/batch.ts';
import { BSON_TYPE } from '../../src/store/values/bson-types.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { anyRow } from '../support/rows/any-row.ts';
import {
  array,
  binary,
  boolean,
  code,
  codeWithScope,
  date,
  dbPointer,
  decimal128,
  document,
  double,
  int32,
  int64,
  nullValue,
  object,
  objectId,
  regex,
  row,
  string,
  symbol,
  timestamp,
} from '../support/rows/bson-writer.ts';
import type { Field } from '../support/rows/bson-writer.ts';
import { arrayBody, chunksOf } from '../support/rows/transcode.ts';

const LONG = process.env.LONG === '1';
const slots = new Slots();
const wasm = createTranscoder(slots);

/**
 * A batch at the very end of the memory. A read one byte beyond it traps, and a trap is not the expected error. The
 * encoders' slots were taken before, so that nothing else is placed there.
 */
function batchAtTheEnd(body: Uint8Array): Batch {
  const address = slots.memory.buffer.byteLength - body.length;
  const bytes = (length = body.length) => new Uint8Array(slots.memory.buffer, address, length);
  bytes().set(body);
  const slot = { address, capacity: body.length, bytes, release: () => undefined };
  return { slot, start: 0, length: body.length, rows: 1, last: null, more: false, release: () => undefined };
}

type Maker = (transcoder: TextTranscoder) => RowEncoder;

/** The text of this batch. Null when it is refused by an error, which must not be a trap. */
function read(transcoder: TextTranscoder, body: Uint8Array, chunkBytes: number, make?: Maker): string | null {
  try {
    return Buffer.concat(chunksOf(transcoder, batchAtTheEnd(body), chunkBytes, 'lines', make)).toString(
      'latin1',
    );
  } catch (error) {
    assert.ok(error instanceof Error, String(error));
    assert.notEqual(error.constructor.name, 'RuntimeError', `trap: ${error.message}`);
    return null;
  }
}

/** Asserts that both transcoders refuse these bytes or return the same. Returns whether they refused. */
function isRefused(body: Uint8Array, chunkBytes = 256, make?: Maker): boolean {
  const text = read(wasm, body, chunkBytes, make);
  assert.equal(text, read(javascriptTranscoder, body, chunkBytes, make), Buffer.from(body).toString('hex'));
  return text === null;
}

const ID = '0123456789abcdef00ff7f80';
const SAMPLES: readonly Field[][] = [
  [],
  [
    ['a', double(1.5)],
    ['b', double(1 / 3)],
  ],
  [
    ['text', string('a text that is longer than sixteen bytes, "quoted"\n')],
    ['e', string('')],
  ],
  [
    ['текст', string('語😀é')],
    ['a key that is longer than sixteen', int32(1)],
  ],
  [
    ['o', object([['a', object([['b', array([])]])]])],
    ['p', array([int32(1), object([]), array([string('x')])])],
  ],
  [
    ['bin', binary(0, Buffer.from('0123456789'))],
    ['uuid', binary(4, Buffer.alloc(16, 7))],
    ['old', binary(2, Buffer.from('abc'))],
  ],
  [
    ['oid', objectId(ID)],
    ['t', boolean(true)],
    ['n', nullValue],
    ['d', date(1_700_000_000_000n)],
  ],
  [
    ['l', int64(2n ** 60n)],
    ['dec', decimal128(Buffer.from('01000000000000000000000000003c30', 'hex'))],
  ],
  [
    ['re', regex('a.*b', 'i')],
    ['ptr', dbPointer('db.c', ID)],
    ['ts', timestamp(5n)],
  ],
  [
    ['code', code('f()')],
    ['sym', symbol('s')],
    ['scoped', codeWithScope('g()', [['n', int32(1)]])],
  ],
];
const rows = [
  ...SAMPLES.map((fields, i) => row(i, fields)),
  document([
    ['a', string('before the id')],
    ['_id', object([['x', int32(1)]])],
    ['id', string('its own')],
    ['z', int32(2)],
  ]),
  row(1, [['id', object([['a value of its own', int32(1)]])]]),
  row(1, [
    ['text', string('longer than the smallest chunk '.repeat(12))],
    ['id', code('f()'.repeat(90))],
    ['n', int32(1)],
  ]),
];

test('sound rows at the very end of the memory are read, and nothing beyond them', () => {
  for (const bytes of rows) assert.equal(isRefused(arrayBody([bytes])), false);
});

test('a batch cut at any byte is refused, except between rows', () => {
  const body = arrayBody(rows);
  const ends = new Set(rows.map((_, i) => arrayBody(rows.slice(0, i)).length));
  for (let length = 0; length < body.length; length++) {
    assert.equal(isRefused(body.subarray(0, length)), !ends.has(length), `cut at ${length}`);
  }
});

/** Selections that descend into `o`, `p` and `_id` of some rows above, and skip parts of them. */
const SELECTED: readonly Maker[] = [
  (each) => each.encoder('lines', new Selection({ fields: ['o.a.b', 'p.a', 'text', '_id'] })),
  (each) => each.encoder('array', new Selection({ hide: ['o.a.b', 'p.x', 'text', 'scoped'] })),
  (each) =>
    each.encoder('lines', new Selection({ show: ['o.a', 'p', 'oid', 'code.x'], fields: ['o.a.b', 'p'] })),
  (each) => {
    const fields = ['_id.x', 'o.a.b', 'o.a.c', 'p.a', 'bin', 'd.e'];
    return each.table(fields, true, new Selection({ fields, hide: ['o.a.b.c', 'p.x'] }));
  },
  (each) => each.table(['id', 'o', 'p', 'code'], false, new Selection({ show: ['o.a', 'p.x'] })),
];

/** Everything, and for rows into which they descend the selections. */
const makersFor = (bytes: Buffer): readonly (Maker | undefined)[] =>
  /[op]\0|_id\0.*z\0/s.test(bytes.toString('latin1')) ? [undefined, ...SELECTED] : [undefined];

test('a document cut at any byte, with its length corrected and a terminator set, is refused or read alike', () => {
  for (const bytes of rows) {
    for (let length = 5; length < bytes.length; length++) {
      const cut = Buffer.from(bytes.subarray(0, length));
      cut.writeInt32LE(length);
      cut[length - 1] = 0;
      for (const make of makersFor(bytes)) isRefused(arrayBody([cut, rows[1] ?? cut]), 256, make);
    }
  }
});

test('any byte changed gives an error or text, the same from both transcoders', () => {
  let refused = 0;
  for (const bytes of rows) {
    const body = arrayBody([bytes, rows[0] ?? bytes]);
    for (let at = 0; at < body.length; at++) {
      const original = body[at] ?? 0;
      for (const changed of [0, 3, 4, 0x7f, 0x80, 0xff, ...[1, 0x80].map((bit) => original ^ bit)]) {
        body[at] = changed;
        for (const make of makersFor(bytes)) if (isRefused(body, 256, make)) refused++;
      }
      body[at] = original;
    }
  }
  assert.ok(refused > 1000, `${refused} refused: the changes must reach what is checked`);
});

test('lengths that are wrong by any amount are refused', () => {
  const lengths = [-1, -(2 ** 31), 2 ** 31 - 1, 0, 1, 3, 4, 5, 6, 12, 100, 65_536, 2 ** 24, 2 ** 30];
  for (const bytes of rows) {
    const body = arrayBody([bytes]);
    for (let at = 0; at <= body.length - 4; at++) {
      for (const length of lengths) {
        const changed = Buffer.from(body);
        changed.writeInt32LE(length, at);
        isRefused(changed);
      }
    }
  }
});

test('a code with a scope that is too short is refused, also beside the selected fields', () => {
  const selection = new Selection({ fields: ['_id'] });
  const forms: readonly Maker[] = [
    (each) => each.encoder('lines', selection),
    (each) => each.table(['_id'], false, selection),
  ];
  // A length says how many bytes the value has, with its own four. The bytes themselves may end sooner.
  const value = Buffer.alloc(13);
  for (let length = 0; length <= value.length; length++) {
    value.writeInt32LE(length);
    for (let room = 0; room <= value.length; room++) {
      const scoped = { type: BSON_TYPE.scopedCode, bytes: value.subarray(0, room) };
      const body = arrayBody([row(5, [['name', scoped]])]);
      for (const make of forms)
        assert.ok(isRefused(body, 256, make), `a length of ${length} in ${room} bytes`);
    }
  }
});

test('random bytes never hang, trap or differ', () => {
  const property = fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
    isRefused(noise);
    const framed = Buffer.concat([Buffer.from('\x030\0\0\0\0\0\x10_id\0\x01\0\0\0'), noise, Buffer.of(0)]);
    framed.writeInt32LE(framed.length - 3, 3);
    isRefused(framed);
  });
  fc.assert(property, { numRuns: LONG ? 500_000 : 1500 });
});

test('random rows with random damage never hang, trap or differ, under any selection', () => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 });
  const name = fc.constantFrom(...'a id _id price 1 a.a a.price _id.a id.a 1.0 constructor.a'.split(' '));
  const names = fc.uniqueArray(name, { minLength: 1, maxLength: 5 });
  const size = fc.constantFrom(256, 16_000);
  const given = [anyRow, damage, names, fc.nat(4), fc.nat(2), size] as const;
  const property = fc.property(...given, (bytes, changes, paths, kind, form, chunkBytes) => {
    const body = arrayBody([bytes]);
    for (const [at, value] of changes) body[at % body.length] = value;
    const hidden = paths.filter((path) => policyFault(path) === undefined);
    const shown = paths.filter((path) => path !== '1.0'); // a place in an array is refused
    const fields = kind < 3 ? paths : undefined;
    const policies = [{}, { hide: hidden.slice(1) }, { show: shown.slice(1) }, { hide: hidden }, {}];
    const selection = new Selection({ fields, ...policies[kind] });
    const columns = fields ? columnsOfFields(fields) : ['id', 'a', 'price', '1'];
    isRefused(body, chunkBytes, (each) =>
      form === 0 ? each.table(columns, false, selection) : each.encoder('lines', selection),
    );
  });
  fc.assert(property, { numRuns: LONG ? 500_000 : 4000 });
});

test('an encoder that met a bad row still writes good ones', () => {
  const encoder = wasm.encoder('lines');
  const bad = batchAtTheEnd(arrayBody([rows[0] ?? Buffer.of(), Buffer.from('nonsense')]));
  assert.throws(() => [...encoder.encode(bad, 256)], /a row of/);
  const good = batchAtTheEnd(arrayBody([row(5, [])]));
  const text = Array.from(encoder.encode(good, 256), (chunk) => Buffer.from(chunk).toString()).join('');
  assert.equal(text, '{"id":5}\n');
  encoder.close();
});
