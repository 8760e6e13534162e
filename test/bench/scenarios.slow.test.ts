import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { CANDIDATES, programOf, type CandidateName } from '../../bench/candidates.ts';
import { JsonBytes } from '../../bench/peers/bson-json.ts';
import { createScenarios } from '../../bench/scenarios.ts';
import { FORMATS } from '../../src/resources/stream/formats/list.ts';
import { BSON, Long, ObjectId } from '../../src/store/values/bson.ts';
import { childProgram } from '../support/process/child-program.ts';

const scenarios = createScenarios(1_000_000);

test('scenarios have unique names, and each measures sluice', () => {
  const names = scenarios.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { name, on } of scenarios) {
    for (const candidates of Object.values(on))
      assert.ok(candidates.length === 0 || candidates.some((each) => CANDIDATES[each].role === 'own'), name);
  }
});

test('every candidate has a program and is measured, and no limit of one store is used for the other', () => {
  const measured = new Set(scenarios.flatMap(({ on }) => Object.values(on).flat()));
  for (const name of Object.keys(CANDIDATES) as CandidateName[]) {
    assert.ok(existsSync(programOf(name, {}, null).file), name);
    assert.ok(measured.has(name), `${name} is missing from all scenarios`);
  }
  for (const { name, on } of scenarios) {
    assert.ok(!on.mongodb?.includes('bare statement'), name);
    for (const candidate of on.sqlite ?? [])
      assert.ok(
        CANDIDATES[candidate].role !== 'peer' && candidate !== 'socket drain',
        `${name}: ${candidate}`,
      );
  }
});

test('a wrong option is refused with a sentence', () => {
  for (const [wrong, why] of [
    [['--scenario', 'users', 'exports'], /^bench: Unexpected argument 'exports'/],
    [['--rounds', 'many'], /^bench: --rounds/],
  ] as const) {
    const run = [...childProgram('../../bench/run.ts'), ...wrong];
    const { status, stderr } = spawnSync(process.execPath, run, { encoding: 'utf8' });
    assert.deepEqual([status, /\n *at /.test(stderr)], [2, false], stderr);
    assert.match(stderr, why);
  }
});

test('the short form has every kind of scenario', () => {
  const kinds = (all: typeof scenarios) => [...new Set(all.map(({ kind }) => kind))].sort();
  assert.deepEqual(kinds(scenarios.filter(({ set }) => set === 'quick')), kinds(scenarios));
});

test('an export of each format in each compression is measured alone', () => {
  const measured = scenarios.flatMap((one) => (one.kind === 'exports' && !one.beside ? [one.body] : []));
  assert.deepEqual(
    measured.map(({ format, compression }) => `${format} ${compression}`),
    FORMATS.flatMap(({ name, compressions }) => compressions.map((compression) => `${name} ${compression}`)),
  );
});

test("the rival's transcoder writes what JSON.stringify writes", () => {
  const rows = [
    {
      _id: ObjectId.createFromTime(7),
      a: 'x',
      b: [1, [2.5, { c: null }], {}],
      _id2: true,
      n: { _id: 'nested' },
    },
    {
      _id: 'text "quoted" \\ \u0001 \n',
      e: 'ключ 🎲',
      f: -0.1,
      g: 1e21,
      h: NaN,
      i: new Date(1.7e12 + 42),
      j: new Date(-1),
    },
    {},
  ].map((document) => ({ document, row: Buffer.from(BSON.serialize(document)) }));
  for (const { document, row } of rows) {
    const { _id, ...rest } = document as { _id?: unknown };
    const out = new JsonBytes([row]);
    out.item(row);
    assert.equal(out.bytes().toString(), JSON.stringify({ ...(_id !== undefined && { id: _id }), ...rest }));
  }
  const long = Buffer.from(BSON.serialize({ l: Long.fromString('9007199254740993') }));
  const out = new JsonBytes([long]);
  out.item(long);
  assert.equal(out.bytes().toString(), '{"l":9007199254740993}');
});
