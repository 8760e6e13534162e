import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Findings } from '../../src/terminal/findings.ts';
import { Kept } from '../support/pull/pulling.ts';

const OK = { promise: 'rows come in order', holds: true, seen: 'GET /items' };
const UNSEEN = { promise: 'a key is asked for', holds: null, seen: 'the server has no keys' };
const BROKEN = { promise: 'a cut is seen', holds: false, seen: 'GET /items answered \u001b[2J' };

test('findings stand behind their marks, and the last line counts the promises that do not hold', () => {
  for (const [unseen, longest, broken] of [
    ['warn', undefined, 'a cut is seen - GET /items answered \\u001b[2J'],
    ['skip', 20, 'a cut is seen - GET …'],
  ] as const) {
    const stdout = new Kept();
    const findings = new Findings(stdout, { unseen, ...(longest !== undefined && { longest }) });
    [OK, UNSEEN, BROKEN].forEach(findings.report);
    assert.equal(findings.end(), 1);
    const lines = stdout.bytes.toString().split('\n');
    assert.deepEqual(
      lines.map((line) => line.slice(0, 6)),
      ['ok    ', `${unseen}  `, 'FAIL  ', 'promis', ''],
    );
    assert.equal(lines[2]?.slice(6), broken);
    assert.equal(lines[3], 'promises that do not hold: 1');
  }
});

test('what could not be seen is no failure', () => {
  const stdout = new Kept();
  const findings = new Findings(stdout, { unseen: 'skip' });
  [OK, UNSEEN].forEach(findings.report);
  assert.equal(findings.end(), 0);
  assert.match(stdout.bytes.toString(), /\nevery promise that was seen holds\n$/);
});
