import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseIndex, isRefusal, type PlanRequest } from '../../../src/resources/query/planner.ts';
import type { Index } from '../../../src/store/indexes.ts';

function index(spec: string, flags: Partial<Index> = {}): Index {
  const keys = spec.split(' ').map((part) => ({
    path: part.replace('-', ''),
    sign: part.startsWith('-') ? (-1 as const) : (1 as const),
  }));
  return { name: spec.replaceAll(' ', '_'), keys, isUnique: false, ...flags };
}

const BY_KEY = index('_id', { isUnique: true });

function nameOf(asked: Partial<PlanRequest>, among: readonly Index[]): string {
  const choice = chooseIndex({ equals: [], ranges: [], ...asked }, [BY_KEY, ...among]);
  return isRefusal(choice) ? choice.reason : choice.index.name;
}

const by = (path: string, direction: 1 | -1 = 1) => ({ path, direction });

test('an index of the equalities in any order, then the sort, then the key is used', () => {
  const among = [index('status customer createdAt _id')];
  assert.equal(
    nameOf({ equals: ['customer', 'status'], sort: by('createdAt') }, among),
    'status_customer_createdAt__id',
  );
  assert.equal(
    nameOf({ equals: ['customer'], sort: by('createdAt') }, among),
    'No index answers this query.',
  );
  assert.equal(
    nameOf({ equals: ['customer', 'status', 'createdAt'] }, among),
    'status_customer_createdAt__id',
  );
  assert.equal(nameOf({}, among), '_id');
});

test('the key must run in the direction of the sort', () => {
  assert.equal(nameOf({ sort: by('a') }, [index('a -_id')]), 'No index answers this query.');
  assert.equal(nameOf({ sort: by('a') }, [index('-a -_id')]), '-a_-_id');
  assert.equal(nameOf({ equals: ['a'] }, [index('a -_id')]), 'a_-_id');
});

test('further fields behind the key do no harm', () => {
  assert.equal(nameOf({ sort: by('a') }, [index('a _id b')]), 'a__id_b');
});

test('a unique index that ends with the sort needs no key', () => {
  const unique = index('tenant number', { isUnique: true });
  assert.equal(nameOf({ equals: ['tenant'], sort: by('number') }, [unique]), 'tenant_number');
  assert.equal(nameOf({ equals: ['tenant'] }, [unique]), 'No index answers this query.');
  assert.equal(nameOf({ equals: ['tenant', 'number'], sort: by('anything') }, [unique]), 'tenant_number');
  assert.equal(nameOf({ equals: ['_id'], sort: by('anything') }, []), '_id');
});

test('a sort by a field that has a value is the order of the key', () => {
  const choice = chooseIndex({ equals: ['a'], ranges: [], sort: by('a', -1) }, [BY_KEY, index('a _id')]);
  assert.ok(!isRefusal(choice), 'the index of a is used');
  assert.deepEqual([choice.sort, choice.direction, choice.equals], ['_id', -1, ['a']]);
});

test('one range is allowed, on the field of the sort, which is the default', () => {
  const among = [index('a _id'), index('b _id')];
  assert.equal(nameOf({ ranges: ['a'] }, among), 'a__id');
  assert.equal(
    nameOf({ ranges: ['a'], sort: by('b') }, among),
    'A range needs the order of its own field: sort=a_asc or sort=a_desc.',
  );
  assert.equal(
    nameOf({ ranges: ['a', 'b'] }, among),
    'Only one field can have a range: a and b have one each, and an index is ordered by one of them.',
  );
  assert.equal(
    nameOf({ ranges: ['a'], equals: ['a'] }, among),
    'a has a value and a range. Give one of them.',
  );
  assert.equal(nameOf({ ranges: ['_id'] }, among), '_id');
});

test('a refusal names the index that would help, or why none can', () => {
  const refuse = (asked: Partial<PlanRequest>, among: readonly Index[]) => {
    const choice = chooseIndex({ equals: [], ranges: [], ...asked }, [BY_KEY, ...among]);
    assert.ok(isRefusal(choice), 'no index can answer it');
    return choice;
  };
  assert.deepEqual(refuse({ equals: ['a', 'b'], sort: by('c') }, []).remedy, ['a', 'b', 'c', '_id']);
  assert.deepEqual(refuse({ equals: ['a'], sort: by('a') }, []).remedy, ['a', '_id']);
  assert.match(refuse({ sort: by('z.0') }, []).reason, /^z\.0 has a number in its path/);
  assert.match(refuse({ sort: by('a..b') }, []).reason, /^a\.\.b is not a path/);
  assert.match(
    refuse({ sort: by('tags') }, [index('tags _id', { refused: 'tags has an array in some row' })]).reason,
    /tags__id has these fields, but it is not used: tags has an array in some row/,
  );
});

test('the index that a refusal names allows the query', () => {
  const paths = ['a', 'b', 'c.d', '_id'];
  let seed = 7;
  const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % below;
  let named = 0;
  for (let n = 0; n < 5_000; n++) {
    const among = Array.from({ length: random(4) }, () =>
      index(
        [
          ...new Set(
            Array.from({ length: 1 + random(4) }, () => `${random(3) ? '' : '-'}${paths[random(4)]}`),
          ),
        ].join(' '),
        { isUnique: random(3) === 0 },
      ),
    );
    const equals = [...new Set(Array.from({ length: random(3) }, () => paths[random(4)] ?? 'a'))];
    const asked: PlanRequest = {
      equals,
      ranges: [],
      ...(random(2) && { sort: by(paths[random(4)] ?? 'a', random(2) ? 1 : -1) }),
    };
    const choice = chooseIndex(asked, [BY_KEY, ...among]);
    if (!isRefusal(choice)) continue;
    assert.ok(choice.remedy, `a remedy for ${JSON.stringify(asked)}`);
    named++;
    const helped = chooseIndex(asked, [BY_KEY, ...among, index(choice.remedy.join(' '))]);
    assert.ok(!isRefusal(helped), `${choice.remedy.join()} allows ${JSON.stringify(asked)}`);
  }
  assert.ok(named > 500, 'many queries were refused first');
});

test('no index is proposed over a path where another index has met arrays', () => {
  const among = [BY_KEY, index('tags', { refused: 'it is multikey', arrays: ['tags'] })];
  const refusedFor = (equals: readonly string[]) => {
    const choice = chooseIndex({ equals, ranges: [] }, among);
    return isRefusal(choice) ? choice : assert.fail('it is answered');
  };
  for (const path of ['tags', 'tags.name']) {
    const { reason, remedy } = refusedFor(['status', path]);
    assert.match(reason, new RegExp(`^No index over ${path} can answer .* as the index tags shows`));
    assert.equal(remedy, undefined);
  }
  assert.deepEqual(refusedFor(['tagsOf']).remedy, ['tagsOf', '_id']);
});
