import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient, MongoNetworkError } from 'mongodb';
import { BSON, type Document } from '../../src/store/values/bson.ts';
import { chain } from '../../src/pipeline/chain.ts';
import type { Plan } from '../../src/store/store.ts';
import { catalogue, expectedIds } from '../support/resources/catalogue.ts';
import { LAST_CHUNK, dechunked } from '../support/engine/chunked.ts';
import { WAYS, openStore } from '../support/store/mongo/mongo.ts';
import { ownMongod, withDatabase } from '../support/store/mongo/mongod.ts';
import { NEVER } from '../support/store/reading.ts';
import type { Member, ReplicaSet } from '../support/store/mongo/replica-set.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';

const PLACES = process.env.LONG ? 20 : 1;
const ROWS = 3_000;
/** More rows than sockets hold, so that the stream is still running when the primary is lost. */
const FILLER = 'x'.repeat(process.env.LONG ? 8_000 : 4_000);
/**
 * How long members wait before an election. Longer than any gap of a stream that continues on the remaining
 * members.
 */
const ELECTION_MS = process.env.LONG ? 10_000 : 8_000;
/**
 * For each read preference the longest time without rows after the primary is lost, and the number of places of the
 * loss.
 */
const READS = {
  primaryPreferred: { longestGapMs: process.env.LONG ? 4_000 : 6_000, places: PLACES },
  ...(process.env.LONG && { primary: { longestGapMs: 15_000, places: PLACES / 4 } }),
};
/** How long after an election reading with `primary` continues. The election itself depends on the members only. */
const NOTICED_MS = 4_000;
/** The state numbers of replSetGetStatus. */
const PRIMARY_AND_SECONDARIES = '1,2,2';
const SET = catalogue(ROWS);

const FAULTS = {
  'is killed': {
    strike: (primary: Member) => primary.kill(),
    mend: (primary: Member) => primary.start(),
  },
  'steps down': {
    strike: (primary: Member) =>
      primary.admin(async (client) => {
        await client.db('admin').command({ replSetStepDown: 5, force: true });
      }),
    mend: () => Promise.resolve(),
  },
  hangs: {
    strike: (primary: Member) => {
      primary.pause();
      return Promise.resolve();
    },
    mend: (primary: Member) => {
      primary.resume();
      return Promise.resolve();
    },
  },
} as const;

function serverOf(t: TestContext, set: ReplicaSet, readPreference: string): Promise<TestServer> {
  return serverOn(t, { MONGODB_URI: `${set.uri}&readPreference=${readPreference}`, RATE_LIMIT: 'off' });
}

async function shop(t: TestContext): Promise<ReplicaSet | null> {
  const set = await ownMongod(t, { members: 3, electionMs: ELECTION_MS, cacheGB: 0.25 });
  if (!set) return null;
  const server = await serverOf(t, set, 'primaryPreferred');
  for (let at = 0; at < ROWS; at += 500)
    await server.insert(SET.slice(at, at + 500).map(({ document }) => ({ ...document, FILLER })));
  return set;
}

/** Writes all the time, so that cluster time advances while a stream is read. The returned function stops it. */
function busy(set: ReplicaSet): () => Promise<void> {
  const client = new MongoClient(set.uri, { serverSelectionTimeoutMS: 1_000, socketTimeoutMS: 1_000 });
  const writes = client.db('other').collection('writes');
  const ended = new AbortController();
  const writing = (async () => {
    while (!ended.signal.aborted) {
      // Without a primary the write fails and is tried again.
      await writes.insertOne({}, { writeConcern: { w: 1 } }).catch(() => undefined);
      await pause(2);
    }
  })();
  return async () => {
    ended.abort();
    await writing;
    await client.close();
  };
}

interface Pulled {
  readonly ids: (string | number)[];
  readonly whole: boolean;
  /** The longest time without a row, in milliseconds. Control lines do not count. */
  readonly gap: number;
}

/** Reads a stream. Calls `strike` once, after this share of it, and continues reading when that resolves. */
function pull(url: URL, path: string, share: number, strike: () => Promise<void>): Promise<Pulled> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    const pieces: Buffer[] = [];
    let taken = 0;
    let gap = 0;
    let at = performance.now();
    let struck = false;
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`);
    socket.on('data', (piece: Buffer) => {
      if (piece.includes('{"id":')) {
        const now = performance.now();
        gap = Math.max(gap, now - at);
        at = now;
      }
      pieces.push(piece);
      taken += piece.length;
      if (struck || taken < share * ROWS * FILLER.length) return;
      struck = true;
      socket.pause();
      strike().then(() => socket.resume(), reject);
    });
    socket.on('error', () => undefined); // missing data shows the cut
    socket.on('close', () => {
      const answer = Buffer.concat(pieces);
      const lines = dechunked(answer).toString().split('\n').slice(0, -1);
      const rows = lines.filter((line) => line.startsWith('{"id":'));
      const ids = rows.map((line) => (JSON.parse(line) as { id: string | number }).id);
      resolve({ ids, whole: answer.toString('latin1', answer.length - 7) === LAST_CHUNK, gap });
    });
  });
}

/**
 * Resolves when there is a primary, all other members follow it, and all know the majority's commit point. After
 * the next loss a majority can then answer at once. (A member that lacks it delays causal reads, without a primary
 * until an election.)
 */
async function healthy(set: ReplicaSet): Promise<void> {
  for (;;) {
    const statuses = await Promise.all(
      set.members.map((member) =>
        member
          .admin((client) => client.db('admin').command({ replSetGetStatus: 1 }))
          .catch((error: unknown): Document => {
            // A member that steps down closes its connections, and is asked again.
            if (error instanceof MongoNetworkError) return {};
            throw error;
          }),
      ),
    );
    const states = statuses.map(({ myState }) => Number(myState)).sort();
    const known = statuses.map(({ optimes }) =>
      JSON.stringify((optimes as Document | undefined)?.lastCommittedOpTime),
    );
    if (states.join() === PRIMARY_AND_SECONDARIES && new Set(known).size === 1) return;
    await pause(100);
  }
}

/**
 * When the primary of now began to be one for its clients: from its election on it may wait up to 10 s for the heartbeat of one
 * that hangs, to learn what that has. All run on one clock. Milliseconds since 1970.
 */
async function ready(set: ReplicaSet): Promise<number> {
  const primary = await set.primary();
  const status = await primary.admin((client) => client.db('admin').command({ replSetGetStatus: 1 }));
  return (
    status as { electionCandidateMetrics: { newTermStartDate: Date } }
  ).electionCandidateMetrics.newTermStartDate.getTime();
}

test('streams of a replica set of three members', async (t) => {
  const set = await shop(t);
  if (!set) return;

  for (const [preference, { longestGapMs, places }] of Object.entries(READS))
    for (const [fault, { strike, mend }] of Object.entries(FAULTS)) {
      const name = `${preference}: the primary ${fault} at ${places} places of a stream`;
      await t.test(`${name}: the whole set comes, once, in order`, async (t) => {
        const server = await serverOf(t, set, preference);
        const gaps: number[] = [];
        let allowed = longestGapMs;
        for (let place = 0; place < places; place++) {
          const sort = ['id_asc', 'price_asc', 'price_desc', 'id_desc'][place % 4] ?? '';
          const snapshot = place % 5 === 4 ? '&consistency=snapshot' : '';
          const primary = await set.primary();
          const path = `/items/stream?sort=${sort}&checkpoints=true${snapshot}`;
          const share = (place + Math.random()) / places / 1.6; // the rest may be in the sockets already
          const quieten = busy(set);
          const begun = Date.now();
          const { ids, whole, gap } = await pull(new URL(server.url), path, share, () => strike(primary));
          await mend(primary);
          await quieten();
          assert.ok(whole, 'the stream ends cleanly');
          assert.deepEqual(ids, expectedIds(SET, sort));
          gaps.push(gap);
          await healthy(set);
          if (preference === 'primary') allowed = Math.max(allowed, (await ready(set)) - begun + NOTICED_MS);
        }
        const longest = Math.max(...gaps);
        t.diagnostic(`gaps of ${gaps.map((gap) => Math.round(gap)).join(' ')} ms`);
        assert.ok(longest <= allowed, `${longest} ms, ${allowed} allowed`);
        await server.released();
      });
    }

  await t.test('with no member left a stream is cut, and never ended cleanly', async (t) => {
    const settings = { MONGODB_URI: set.uri, RATE_LIMIT: 'off' };
    const impatient = await serverOn(t, settings, { retryMs: 2_000 });
    const { ids, whole } = await pull(new URL(impatient.url), '/items/stream', 0.1, async () => {
      await Promise.all(set.members.map((member) => member.kill()));
    });
    assert.equal(whole, false);
    assert.deepEqual(
      ids,
      expectedIds(SET, 'id_asc').slice(0, ids.length),
      'the received rows are the beginning',
    );
    assert.ok(ids.length < ROWS);
  });
});

test('a chain goes on from a member that lacks later writes, and a new read waits for them', async (t) => {
  const enabled = ['--setParameter', 'enableTestCommands=1'];
  // The hidden member confirms writes for a majority, while the only secondary that is read from is stopped.
  const set = await ownMongod(t, { members: 3, hidden: 1, cacheGB: 0.25, arguments: enabled });
  if (!set) return;
  const primary = await set.primary();
  const secondary = set.members.slice(0, 2).find((member) => member !== primary) ?? assert.fail();
  const apply = (mode: 'alwaysOn' | 'off') =>
    secondary.admin(async (client) => {
      const admin = client.db('admin');
      const { count } = await admin.command({ configureFailPoint: 'rsSyncApplyStop', mode });
      const entered = {
        waitForFailPoint: 'rsSyncApplyStop',
        timesEntered: Number(count) + 1,
        maxTimeMS: 60_000,
      };
      if (mode === 'alwaysOn') await admin.command(entered);
    });
  const plan: Plan = { sort: '_id', direction: 1 };
  const size = { rows: 100, bytes: Infinity };
  for (const { name, lane } of WAYS)
    await t.test(name, async (t) => {
      const uri = withDatabase(`${set.uri}&readPreference=secondary`, `behind_${lane}`);
      const { store, slots } = await openStore(t, uri, { lane });
      const write = (from: number) =>
        store.items.insert(
          Array.from({ length: 500 }, (_, n) => BSON.serialize({ _id: from + n, category: 'c', price: 1 })),
          'fail',
        );
      await write(0);
      const first = await store.items.read(plan, {}, size, NEVER);
      await apply('alwaysOn');
      try {
        await write(500);
        let rows = 0;
        for await (const batch of chain(store.items, plan, first, Infinity, NEVER)) {
          rows += batch.rows;
          batch.release();
        }
        assert.equal(rows, 500);
        const waiting = store.items.read(plan, {}, size, AbortSignal.timeout(500));
        await assert.rejects(waiting, { name: 'TimeoutError' });
      } finally {
        await apply('off');
      }
      const anew = await store.items.read(plan, { skip: 500 }, size, NEVER);
      assert.equal(anew.rows, 100);
      anew.release();
      assert.equal(slots.taken, 0);
    });
});
