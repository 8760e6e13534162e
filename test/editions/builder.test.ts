import assert from 'node:assert/strict';
import { once } from 'node:events';
import { EditionMakers } from '../../src/editions/makers.ts';
import { placeOf, type EditionRecord } from '../../src/editions/record.ts';
import { AppError, changesExpired } from '../../src/base/errors.ts';
import { sweep } from '../../src/editions/publish.ts';
import { Int32 } from '../../src/store/values/bson.ts';
import { EditionMaker, HOUR_MS, rowsOfEdition } from '../support/editions/edition-maker.ts';
import { MemoryObjects } from '../support/editions/memory-objects.ts';
import { NEVER } from '../support/store/reading.ts';
import { twoHandles } from '../support/exports/export-worker.ts';
import { onStores } from '../support/process/each-server.ts';
import { until } from '../support/store/changes.ts';
import { withOverrides } from '../support/store/with-overrides.ts';
import { makeItem } from '../support/store/items.ts';

const row = (id: number, note: string) => makeItem(new Int32(id), 'b', new Int32(1), note).bytes;

onStores(
  async (t, name) => {
    const handles = await twoHandles(t, name);
    if (!handles) return null;
    const objects = new MemoryObjects();
    const [one, other] = handles;
    const { items } = one.store;
    await items.insert(
      Array.from({ length: 100 }, (_, n) => row(n, 'first')),
      'fail',
    );
    return {
      objects,
      items,
      handle: one,
      maker: await EditionMaker.open(one, objects),
      other: await EditionMaker.open(other, objects),
    };
  },
  (testStore) => {
    testStore(
      'after one change one chunk is read and stored, and the others keep their names',
      async ({ objects, items, maker }) => {
        await maker.make();
        const before = await maker.head();
        assert.ok(before);
        assert.equal(before.rows, 100);
        assert.equal(before.sequence, 0);
        const puts: string[] = [];
        objects.before = (path) => void puts.push(path);
        await items.insert([row(50, 'second')], 'replace');
        await maker.make();
        const after = await maker.head();
        assert.ok(after);
        assert.equal(after.sequence, 1);
        const first = await maker.files().contents(before);
        const second = await maker.files().contents(after);
        const names = new Set(first.chunks.map(({ name }) => name));
        assert.ok(names.size > 5);
        const others = second.chunks.filter(({ name }) => !names.has(name));
        assert.ok(others.length <= 2, `${others.length} chunks`);
        assert.equal(
          puts.filter((path) => path.endsWith('.ndjson.gz') && !path.includes('delta')).length,
          others.length,
        );
        assert.deepEqual(
          after.deltas.map(({ rows, removed }) => [rows, removed]),
          [[1, 0]],
        );
        assert.deepEqual(after.kept, [{ edition: before.edition, at: before.at }]);
        await rowsOfEdition(before, maker.files());
      },
    );

    testStore(
      'an attempt without a change reads no row and no index, and puts nothing but the head',
      async ({ objects, items, maker }) => {
        await maker.make();
        const before = await maker.head();
        const { read, stored } = maker.meter.values(maker.time).get('items') ?? {};
        const puts: string[] = [];
        const gets: string[] = [];
        objects.before = (path) => void puts.push(path);
        objects.got = (path) => void gets.push(path);
        maker.hooks = { reads: () => assert.fail('rows are read') };
        maker.time -= HOUR_MS / 4 - 1_000; // files are looked through only every ten minutes
        await maker.make({ filesAt: 'https://cdn.example/items/chunks/' });
        assert.deepEqual([puts, gets], [['items/edition.json'], []]);
        const after = await maker.head();
        assert.ok(before && after);
        const { at, changes, files, ...rest } = after;
        assert.ok(at > before.at);
        assert.deepEqual({ ...before, ...rest }, before);
        assert.equal(files, 'https://cdn.example/items/chunks/');
        assert.ok(changes);
        assert.deepEqual(maker.meter.values(maker.time).get('items')?.read, read);
        assert.deepEqual(maker.meter.values(maker.time).get('items')?.stored, stored);
        maker.hooks = {};
        await items.insert([row(50, 'second')], 'replace');
        await maker.make();
        const third = await maker.head();
        assert.deepEqual([third?.sequence, third?.deltas.length, third?.kept.length], [1, 1, 1]);
        assert.equal(
          (await rowsOfEdition(third ?? assert.fail(), maker.files())).toString(),
          maker.state.toString(),
        );
      },
    );

    testStore(
      'a walk that was killed goes on behind what it has stored, in another process',
      async ({ objects, maker, other }) => {
        let steps = 9;
        objects.before = () => {
          if (--steps === 0) throw new Error('killed');
        };
        await maker.make();
        assert.equal(await maker.head(), null);
        const puts = new Set<string>();
        const there = new Set([...objects.all.keys()].filter((path) => path.endsWith('.gz')));
        assert.ok(there.size >= 3);
        objects.before = (path) => void puts.add(path);
        other.time = maker.time + HOUR_MS;
        await other.make();
        const head = await other.head();
        assert.equal(head?.rows, 100);
        assert.ok(head);
        await rowsOfEdition(head, other.files());
        const again = [...there].filter((path) => puts.has(path));
        assert.ok(again.length <= 2, `${again.length} of ${there.size} chunks again`);
        assert.equal(objects.all.has('items/work.json'), false);
      },
    );

    testStore(
      'a change behind a state that ends before all is read is in the edition',
      async ({ maker, items }) => {
        await maker.make();
        await items.insert([row(10, 'second'), row(90, 'second')], 'replace');
        let states = 0;
        maker.hooks = {
          snapshot: async (state) => {
            if (++states > 1) return state;
            await items.insert([row(10, 'third')], 'replace');
            let reads = 0;
            const read: typeof state.rows.read = (...call) => {
              if (++reads > 1) throw new AppError('snapshot-expired', 'the state is over');
              return state.rows.read(...call);
            };
            return withOverrides(state, { rows: withOverrides(state.rows, { read }) });
          },
        };
        await maker.make();
        assert.ok(states > 1);
        const head = await maker.head();
        assert.ok(head);
        assert.equal((await rowsOfEdition(head, maker.files())).toString(), maker.state.toString());
      },
    );

    testStore(
      'a walk behind lost changes that was killed goes on behind what it has read',
      async ({ objects, maker, other, items }) => {
        await maker.make();
        const { place } = placeOf((await maker.records.get('items', NEVER)).place ?? assert.fail());
        const changed = Array.from({ length: 101 }, (_, n) => row(n, 'second'));
        await items.insert(changed, 'replace');
        const feed = items.changes ?? assert.fail();
        const changes = withOverrides(feed, {
          read: (from, ...rest) =>
            Buffer.from(from.token).equals(place.token)
              ? Promise.reject(changesExpired(new Error('lost')))
              : feed.read(from, ...rest),
        });
        maker.hooks = { changes };
        other.hooks = { changes };
        let saves = 6;
        objects.before = (path) => {
          if (path.endsWith('/work.json') && --saves === 0) throw new Error('killed');
        };
        await maker.make();
        assert.equal((await maker.head())?.rows, 100);
        objects.before = () => undefined;
        other.time = maker.time + 2 * HOUR_MS;
        await sweep(await maker.records.get('items', NEVER), {
          objects,
          resource: 'items',
          now: () => other.time,
          assertHeld: () => undefined,
        });
        await other.make();
        const head = await other.head();
        assert.ok(head);
        assert.equal(head.rows, 101);
        await rowsOfEdition(head, other.files());
        const { chunks } = await other.files().contents(head);
        const read = other.meter.values(other.time).get('items')?.read ?? NaN;
        assert.ok(read > 0 && read <= chunks.length - 4, `${read} of ${chunks.length} chunks`);
      },
    );

    testStore(
      'a walk that was killed behind its last row goes on as any other, and gives the same name',
      async ({ objects, maker, other, items, handle }) => {
        objects.before = (path) => {
          if (path.endsWith('.index.json')) throw new Error('killed');
        };
        await maker.make();
        assert.equal(await maker.head(), null);
        objects.before = () => undefined;
        await items.insert([row(1_000, 'behind'), row(1_001, 'behind')], 'fail');
        other.time = maker.time + HOUR_MS;
        await other.make();
        const head = await other.head();
        assert.ok(head);
        const rows = await rowsOfEdition(head, other.files());
        assert.equal(head.rows, 102);
        const elsewhere = await EditionMaker.open(handle, new MemoryObjects());
        await elsewhere.records.change('items', (record) => ({ ...record, head: null, place: null }));
        elsewhere.time = other.time + HOUR_MS;
        await elsewhere.make();
        assert.equal((await elsewhere.head())?.edition, head.edition);
        assert.equal(rows.toString(), elsewhere.state.toString());
      },
    );

    testStore(
      'a walk says of how many rows how far it has come, and one that goes on begins with what is there',
      async ({ objects, maker }) => {
        const { signal } = new AbortController();
        const known = () => maker.meter.values(maker.time + 2_000).get('items') ?? {};
        /** The progress that a beat notes when the walk rests for the third time, which then fails. */
        const stopAtThirdRest = async (before = 0) => {
          let rests = 0;
          const noted: NonNullable<EditionRecord['progress']>[] = [];
          objects.before = async (path) => {
            if (!path.endsWith('work.json') || ++rests < 3) return;
            await until('the progress is noted', async () => {
              maker.beat();
              const { progress } = await maker.records.get('items', signal);
              if (!progress || progress.rows <= before) return false;
              noted.push(progress);
              return true;
            });
            throw new Error('killed');
          };
          await maker.make();
          return noted[0] ?? assert.fail();
        };
        const first = await stopAtThirdRest();
        assert.ok(first.rows > 0 && first.rows < 50, `${first.rows} rows`);
        assert.ok(first.bytes > first.rows * 20);
        assert.equal(first.of, 100);
        const { read = 0, stored, failures } = known();
        assert.ok(read >= 3);
        assert.deepEqual([stored, failures], [read, 1]);
        objects.before = () => undefined;
        const second = await stopAtThirdRest(first.rows);
        assert.ok(second.rows > first.rows, `${second.rows} rows behind ${first.rows}`);
        objects.before = () => undefined;
        await maker.make();
        const { age, attempt, walked, ...rest } = known();
        assert.ok(age !== undefined && age >= 2, String(age));
        assert.ok(attempt !== undefined);
        assert.equal(walked, undefined);
        assert.deepEqual([rest.sequence, rest.rows, rest.failures], [0, 100, 2]);
      },
    );

    testStore('who has lost the lease writes no head', async ({ objects, maker, other }) => {
      let own: Awaited<ReturnType<typeof other.head>> = null;
      objects.before = async (path) => {
        if (own || !path.includes('/edition/')) return;
        objects.before = () => undefined;
        other.time = maker.time + HOUR_MS;
        await other.make();
        own = await other.head();
      };
      await maker.make();
      const head = await other.head();
      assert.ok(head);
      assert.deepEqual(head, own);
      const { lease } = await other.records.get('items', new AbortController().signal);
      assert.equal(lease, null, 'the other one was not disturbed');
      const published = objects.all.get('items/edition.json');
      assert.equal(Buffer.from(published?.bytes ?? []).toString(), JSON.stringify(head));
    });

    testStore(
      'a put of a head that ends behind that of the next builder leaves the newer head',
      async ({ objects, items, maker, other }) => {
        await maker.make();
        await items.insert([row(100, 'new')], 'fail');
        let own = '';
        objects.before = async (path) => {
          if (path !== 'items/edition.json') return;
          objects.before = () => undefined;
          await items.insert([row(101, 'newer')], 'fail');
          other.time = maker.time + HOUR_MS;
          await other.make();
          own = JSON.stringify(await other.head());
        };
        await maker.make();
        const published = objects.all.get('items/edition.json');
        assert.equal(Buffer.from(published?.bytes ?? []).toString(), own);
        assert.match(own, /"rows":102/);
      },
    );

    testStore(
      'files go an hour after the last edition that names them, and never those of kept ones',
      async ({ objects, items, maker }) => {
        objects.now = () => maker.time;
        for (let n = 0; n < 6; n++) {
          await items.insert([row(50, `change ${n}`)], 'replace');
          await maker.make({ keep: 2 });
        }
        const head = await maker.head();
        assert.ok(head);
        const options = { objects, resource: 'items', assertHeld: () => undefined };
        const sweepAt = async (time: number) =>
          sweep(await maker.records.get('items', NEVER), { ...options, now: () => time });
        const heads = () => [...objects.all.keys()].filter((path) => path.includes('/edition/')).length;
        const count = heads();
        assert.ok(count >= 5, `${count} heads stay for an hour`);
        assert.ok((await sweepAt(maker.time + 2 * HOUR_MS)) > 0);
        assert.equal(heads(), 2);
        await rowsOfEdition(head, maker.files());
        const [kept] = head.kept;
        const older = kept && (await maker.files().head(kept.edition));
        assert.ok(older);
        await rowsOfEdition(older, maker.files());
      },
    );

    testStore(
      'a builder that was stopped past its lease puts no head and removes nothing, and the next one makes up for it',
      async ({ objects, maker, items }) => {
        await maker.make();
        const before = await maker.head();
        await items.insert([row(100, 'new')], 'fail');
        maker.time += 2 * HOUR_MS; // files that no edition names may go
        objects.all.set('items/chunks/left', { bytes: new Uint8Array(1), storedAt: 0 });
        const changed: string[] = [];
        for (const last of [/^items\/edition\/\w+\.json$/, /^items\/edition\.json$/]) {
          objects.before = (path) => {
            changed.push(path);
            if (last.test(path)) maker.time += 10_001;
          };
          await maker.make();
          objects.before = () => undefined;
          assert.match(changed.pop() ?? '', last);
          assert.ok(objects.all.has('items/chunks/left'));
        }
        await maker.make();
        assert.notEqual((await maker.head())?.edition, before?.edition);
        assert.ok(!objects.all.has('items/chunks/left'));
      },
    );

    testStore(
      'an edition that is asked for is made, and given to who asks for the newest',
      async ({ objects, maker, items }) => {
        const rests = new AbortController();
        const makers = new EditionMakers({
          records: maker.records,
          meter: maker.meter,
          objects,
          builder: {
            work: async () => {
              if (!(await maker.records.get('items', rests.signal)).isAsked) return 1_000;
              await maker.make();
              return 0;
            },
          },
          sources: () => new Map([['items', maker.source()]]),
          isPublic: () => true,
          pause: (ms, signal) => (ms === 0 ? Promise.resolve() : once(signal, 'abort')),
          log: { info: () => undefined, warn: () => undefined, error: () => undefined },
        });
        assert.equal(makers.declared('items'), true);
        assert.equal(makers.declared('others'), false);
        assert.equal(await makers.newest('items', rests.signal), null);
        await makers.make('items', rests.signal);
        const found = async () => {
          for (;;) {
            const newest = await makers.newest('items', rests.signal);
            if (newest && 'head' in newest) return newest.head;
            await items.describe(rests.signal);
          }
        };
        const head = await found();
        assert.equal((JSON.parse(Buffer.from(head).toString()) as { rows: number }).rows, 100);
        assert.equal(await found(), head);
        await makers.close();
      },
    );
  },
);
