import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { FileGoneError } from '../../src/store/files.ts';
import type { ObjectStore } from '../../src/store/objects.ts';
import { below, oneOf, randomFrom } from '../support/store/random-collection.ts';
import { SEED } from '../support/seed.ts';
import type { ContractTest } from '../support/tests-with.ts';

/** Larger than any piece that is read at once. */
const LARGE = randomBytes(3 * 1024 * 1024 + 17);
const STEPS = process.env.LONG ? 2_000 : 60;

export async function readObject(
  objects: ObjectStore,
  path: string,
  start: number,
  end: number,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of objects.read(path, start, end)) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

export async function listed(objects: ObjectStore, prefix: string): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for await (const { path, bytes, storedAt } of objects.list(prefix)) {
    assert.ok(!found.has(path), `${path} is listed once`);
    assert.ok(Math.abs(storedAt - Date.now()) < 3_600_000, `${path} was stored at ${storedAt}`);
    found.set(path, bytes);
  }
  return found;
}

/** Every promise of src/store/objects.ts, on one implementation. */
export function objectsContract(test: ContractTest<ObjectStore>): void {
  test('an object is there whole, is replaced whole, and any range of it can be read', async (objects) => {
    const path = 'orders/chunks/a~b-c_d.ndjson.gz';
    assert.equal(await objects.get(path), null);
    assert.equal(await objects.size(path), null);
    assert.equal(await objects.put(path, LARGE), true);
    assert.equal(await objects.size(path), LARGE.length);
    assert.ok(Buffer.from((await objects.get(path)) ?? []).equals(LARGE));
    for (const [start, end] of [
      [0, LARGE.length],
      [1, 2],
      [7, 7],
      [LARGE.length - 1, LARGE.length],
      [1_000_000, 2_500_000],
    ] as const)
      assert.ok((await readObject(objects, path, start, end)).equals(LARGE.subarray(start, end)));
    await assert.rejects(readObject(objects, path, LARGE.length, LARGE.length + 1), FileGoneError);
    assert.equal(await objects.put(path, Buffer.from('short')), true);
    assert.equal(String(await objects.get(path)), 'short');
    await assert.rejects(readObject(objects, 'orders/chunks/none', 0, 1), FileGoneError);
  });

  test('an object that is to be new is stored only if there is none', async (objects) => {
    const put = (text: string) => objects.put('orders/new.json', Buffer.from(text), { isNew: true });
    assert.equal(await put('first'), true);
    assert.equal(await put('second'), false);
    assert.equal(String(await objects.get('orders/new.json')), 'first');
    await objects.remove('orders/new.json');
    const all = await Promise.all(Array.from({ length: 8 }, (_, n) => put(`at once ${n}`)));
    assert.equal(all.filter(Boolean).length, 1, 'one of eight writers stores it');
    assert.equal(String(await objects.get('orders/new.json')), `at once ${all.indexOf(true)}`);
  });

  test('objects are what a map of paths would have, and lists of any beginning too', async (objects) => {
    const random = randomFrom(SEED);
    const model = new Map<string, Buffer>();
    const paths = [
      'a/edition.json',
      'a/chunks/1.gz',
      'a/chunks/12.gz',
      'ab/chunks/1.gz',
      'b/_delta_log/0.json',
    ];
    for (let step = 0; step < STEPS; step++) {
      const path = oneOf(random, paths);
      const bytes = Buffer.alloc(below(random, 2_000), `${step}`);
      const isNew = random() < 0.3;
      if (random() < 0.3) {
        await objects.remove(path);
        model.delete(path);
      } else if (await objects.put(path, bytes, { isNew })) {
        assert.ok(!isNew || !model.has(path));
        model.set(path, bytes);
      } else assert.ok(isNew && model.has(path));
      const found = await objects.get(path);
      assert.deepEqual(found && Buffer.from(found), model.get(path) ?? null);
      const prefix = oneOf(random, ['', 'a', 'a/', 'a/chunks/', 'a/chunks/1', 'b/', 'c/d/']);
      const expected = [...model]
        .filter(([one]) => one.startsWith(prefix))
        .map(([one, { length }]) => [one, length] as const);
      assert.deepEqual(await listed(objects, prefix), new Map(expected), `list of ${prefix}`);
    }
  });

  test('a reader of an object that is replaced all the time never sees a part of it', async (objects) => {
    const versions = ['a', 'b', 'c'].map((text, n) => Buffer.alloc(100_000 + n, text));
    await objects.put('orders/edition.json', versions[0] as Buffer);
    const done = new AbortController();
    const reading = (async () => {
      while (!done.signal.aborted) {
        const found = await objects.get('orders/edition.json');
        assert.ok(versions.some((one) => found && one.equals(found)));
      }
    })();
    for (let n = 0; n < 20; n++) await objects.put('orders/edition.json', versions[n % 3] as Buffer);
    done.abort();
    await reading;
  });

  test('an object without bytes is one, what is not there can be removed, and other paths are refused', async (objects) => {
    await objects.ping();
    await objects.put('orders/empty', Buffer.alloc(0));
    assert.equal(await objects.size('orders/empty'), 0);
    assert.equal((await objects.get('orders/empty'))?.length, 0);
    assert.equal((await readObject(objects, 'orders/empty', 0, 0)).length, 0);
    await objects.remove('orders/none');
    for (const path of ['../a', 'a/../b', '/a', 'a/', 'a//b', '.', '', 'a b', 'a/@unfinished/b', 'ä']) {
      await assert.rejects(objects.put(path, Buffer.from('x')), TypeError, path);
      await assert.rejects(objects.get(path), TypeError);
      await assert.rejects(objects.size(path), TypeError);
      await assert.rejects(objects.remove(path), TypeError);
      await assert.rejects(readObject(objects, path, 0, 1), TypeError);
    }
  });
}
