import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameFault, readDeclarations } from '../../src/resources/declarations.ts';
import { Selection } from '../../src/rows/selection.ts';
import fc from '../support/fast-check.ts';

const exposed = (EXPOSE: string) => readDeclarations({ EXPOSE, MONGODB_URI: 'mongodb://x/own' });

test('an entry of EXPOSE that leaves nothing out is a fault', () => {
  const faulty = [
    ...[
      'crm.*,!secrets',
      'crm.*,!CRM.secrets',
      'crm.*,!crm.secret?',
      'crm.*,!crm.secret[s]',
      'crm.*,!other.*',
    ],
    ...[
      'crm.secrets,!crm.secrets',
      'crm.*,crm.secrets,!crm.s*',
      'orders,!secrets',
      '!secrets',
      'shop_*,!crm.secrets',
    ],
    ...['shop_*,!secrets', 'crm.a*,!crm.b*', 'crm.*x,!crm.*y'],
  ];
  for (const text of faulty) assert.equal(exposed(text).faults.length, 1, text);
  const sound = [
    ...[
      'crm.*,!crm.secrets',
      'crm.*,!crm.SECRETS',
      'crm.*,orders,!crm.tmp_*',
      '*,!secrets',
      'shop_*,!shop_x',
      '*,!*x',
    ],
    ...['crm.*,!*.secrets', 'crm.*,!*', 'crm.a*,crm.b*,!crm.*z', 'crm.*,crm.secrets,!crm.other'],
  ];
  for (const text of sound) assert.deepEqual(exposed(text).faults, [], text);
});

/** Whether a name matches, a character at a time: the reference for globs. */
function isMatch(pattern: string, name: string): boolean {
  const [first] = pattern;
  if (first === undefined) return name === '';
  if (first !== '*') return name.startsWith(first) && isMatch(pattern.slice(1), name.slice(1));
  return isMatch(pattern.slice(1), name) || (name !== '' && isMatch(pattern, name.slice(1)));
}

const word = (characters: string, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...characters.split('')), minLength: 1, maxLength });
/** All names of at most four characters. */
const NAMES = ['a', 'b', '.'].flatMap((a) =>
  ['', 'a', 'b', '.'].flatMap((b) => ['', 'a', 'b'].flatMap((c) => ['', 'a', 'b'].map((d) => a + b + c + d))),
);

test('random patterns serve what a reference matcher serves, and each exclusion without a fault can leave something out', () => {
  let compared = 0;
  const pattern = fc.tuple(fc.constantFrom('', 'd.'), word('ab*', 3), fc.constantFrom('*', '*a', '*b'));
  const exclusion = fc.tuple(fc.constantFrom('', 'd.'), word('ab*.', 4));
  fc.assert(
    fc.property(pattern, exclusion, ([database, begin, end], [other, left]) => {
      const entry = `${database}${begin}${end}`;
      const excluded = `${other}${left}`;
      const { resources, faults } = exposed(`${entry},!${excluded}`);
      const served = resources[0]?.pattern ?? assert.fail();
      const full = (name: string) => `${database}${name}`;
      const matched = NAMES.filter((name) => isMatch(entry, full(name)));
      const gone = matched.filter((name) => isMatch(excluded, full(name)));
      if (gone.length > 0) assert.deepEqual(faults, []);
      for (const name of NAMES)
        assert.equal(
          served.matches(name),
          matched.includes(name) && !gone.includes(name),
          `${entry} ${excluded} ${name}`,
        );
      const idle = !NAMES.some((name) => isMatch(excluded, full(name)));
      if (faults.length === 0) assert.equal(served.idle(NAMES).length, idle ? 1 : 0);
      compared++;
    }),
  );
  assert.equal(compared, 100);
});

test('a path of hide or show that means no field is refused', () => {
  for (const path of ['*', 'o.*', '*.a', 'arr.0', 'a.12.b', 'a.', '.a', 'a..b'])
    for (const given of [{ hide: [path] }, { show: [path] }])
      assert.throws(() => new Selection(given), RangeError, JSON.stringify(given));
  for (const path of ['a', 'a.b', '2024', 'a*', 'a.b2', 'a.2b', 'ä.ü'])
    for (const given of [{ hide: [path] }, { show: [path] }]) assert.ok(new Selection(given));
});

test('a name of a path of the server is no name of a resource', () => {
  for (const name of ['changes', 'clients', 'exports', 'resources', 'api'])
    assert.match(nameFault(name) ?? '', /is taken by a route/, name);
});
