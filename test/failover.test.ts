import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Document } from '../src/store/bson.ts';
import { catalogue, expectedIds } from './support/catalogue.ts';
import { LAST_CHUNK, dechunked } from './support/chunked.ts';
import { ownMongod } from './support/mongod.ts';
import type { Member, ReplicaSet } from './support/replica-set.ts';
import { serverOn, type TestServer } from './support/server.ts';

const PLACES = Number(process.env.PLACES ?? (process.env.LONG ? 20 : 1));
const ROWS = 3_000;
/** Larger than what sockets hold: where the primary is lost, the stream is under way. */
const FILLER = 'x'.repeat(process.env.LONG ? 8_000 : 4_000);
/**
 * What a client waits for at most while a member is away (primaryPreferred). On a machine that does other things the members left
 * take longer to agree on what a majority has, which a causal read waits for.
 */
const LONGEST_GAP_MS = process.env.LONG ? 4_000 : 25_000;
/** As replSetGetStatus numbers them. */
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

async function shop(t: TestContext): Promise<{ set: ReplicaSet; server: TestServer } | null> {
  const set = await ownMongod(t, { members: 3, electionMs: 2_000, cacheGB: 0.25 });
  if (!set) return null;
  const server = await serverOn(t, { MONGODB_URI: set.uri, RATE_LIMIT: 'off' });
  for (let at = 0; at < ROWS; at += 500)
    await server.insert(SET.slice(at, at + 500).map(({ document }) => ({ ...document, FILLER })));
  return { set, server };
}

interface Pulled {
  readonly ids: (string | number)[];
  readonly whole: boolean;
  /** The longest time in which nothing came. Milliseconds. */
  readonly gap: number;
}

/** Reads a stream; `strike` is called once, when about that share of it has come, and reading goes on when it is done. */
function pull(url: URL, path: string, share: number, strike: () => Promise<void>): Promise<Pulled> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    const pieces: Buffer[] = [];
    let [taken, gap, at, struck] = [0, 0, performance.now(), false];
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`);
    socket.on('data', (piece: Buffer) => {
      const now = performance.now();
      gap = Math.max(gap, now - at);
      at = now;
      pieces.push(piece);
      taken += piece.length;
      if (struck || taken < share * ROWS * FILLER.length) return;
      struck = true;
      socket.pause();
      strike().then(() => socket.resume(), reject);
    });
    socket.on('error', () => undefined); // a cut is seen by what is missing
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
 * Resolves when there is a primary, all others follow it, and they know all that a majority has: the next loss then leaves a
 * majority that can answer at once. (Until it knows, a member lets causal reads wait, without a primary for an election.)
 */
async function healthy(set: ReplicaSet): Promise<void> {
  for (;;) {
    const statuses = await Promise.all(
      set.members.map((member) =>
        member.admin((client) => client.db('admin').command({ replSetGetStatus: 1 })),
      ),
    );
    const states = statuses.map(({ myState }) => Number(myState)).sort();
    const known = statuses.map(({ optimes }) => JSON.stringify((optimes as Document).lastCommittedOpTime));
    if (states.join() === PRIMARY_AND_SECONDARIES && new Set(known).size === 1) return;
    await pause(100);
  }
}

test('streams of a replica set of three', async (t) => {
  const opened = await shop(t);
  if (!opened) return;
  const { set, server } = opened;

  for (const [fault, { strike, mend }] of Object.entries(FAULTS))
    await t.test(
      `the primary ${fault} at ${PLACES} places of a stream: the whole set comes, once, in order`,
      async (t) => {
        const gaps = { live: [0], snapshot: [0] };
        for (let place = 0; place < PLACES; place++) {
          const sort = ['id_asc', 'price_asc', 'price_desc', 'id_desc'][place % 4] ?? '';
          const consistency = place % 5 === 4 ? 'snapshot' : 'live';
          const snapshot = consistency === 'snapshot' ? '&consistency=snapshot' : '';
          const primary = await set.primary();
          const path = `/items/stream?sort=${sort}&checkpoints=true${snapshot}`;
          const share = (place + Math.random()) / PLACES / 1.6; // the rest may be in the sockets already
          const { ids, whole, gap } = await pull(new URL(server.url), path, share, () => strike(primary));
          assert.ok(whole, 'the stream ends cleanly');
          assert.deepEqual(ids, expectedIds(SET, sort));
          gaps[consistency].push(gap);
          await mend(primary);
          await healthy(set);
        }
        const [live, snapshot] = [Math.max(...gaps.live), Math.max(...gaps.snapshot)];
        t.diagnostic(
          `${PLACES} places: longest gap ${Math.round(live)} ms, of a snapshot ${Math.round(snapshot)} ms`,
        );
        assert.ok(live <= LONGEST_GAP_MS);
        assert.equal(server.slots.taken, 0);
      },
    );

  await t.test('no member is left: a stream is cut, and never ended', async (t) => {
    const settings = { MONGODB_URI: set.uri, RATE_LIMIT: 'off' };
    const impatient = await serverOn(t, settings, { lastingMs: 2_000 });
    const { ids, whole } = await pull(new URL(impatient.url), '/items/stream', 0.1, async () => {
      await Promise.all(set.members.map((member) => member.kill()));
    });
    assert.equal(whole, false);
    assert.deepEqual(ids, expectedIds(SET, 'id_asc').slice(0, ids.length), 'what came is the beginning');
    assert.ok(ids.length < ROWS);
  });
});
