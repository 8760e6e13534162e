import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { jwtSettings, signingPair, testIssuer, tokenOf } from '../access/issuer.ts';
import { bearer, keysText } from '../access/keys-text.ts';
import { again } from '../again.ts';
import { temporaryFolder } from '../directory.ts';
import type { Export } from '../../../src/exports/export.ts';
import { awaited, order } from '../exports/exports.ts';
import { childServer } from '../process/child-server.ts';
import type { TestRedis } from './redis.ts';
import type { TestRedises } from './topologies.ts';

/** The rows of the sample. */
const ROWS = 53_940;
const LIMIT = 4;
const WORKERS = 2;
const MOST_ORDERS = 16;
/** An export that nobody makes would be waited for without end. Milliseconds. */
const LATEST_MS = 100_000;

type Harm = (redis: TestRedis, t: TestContext) => Promise<void>;

const HARMS: Readonly<Record<string, Harm>> = {
  'is killed': (redis) => redis.kill(),
  hangs: (redis, t) => {
    redis.pause();
    t.after(() => redis.resume());
    return Promise.resolve();
  },
};

/** A server of two workers whose clients have tokens, and one of them a key with a limit that it does not reach. */
async function serverOf(t: TestContext, url: string) {
  const keysFile = join(await temporaryFolder(t), 'keys.json');
  writeFileSync(keysFile, keysText([{ name: 'busy', rate: '100000/s' }]));
  const pair = await signingPair('one');
  const issuer = await testIssuer(t, [pair]);
  const server = await childServer(t, {
    MONGODB_URI: '',
    WORKERS: String(WORKERS),
    SAMPLE: 'auto',
    REDIS_URL: url,
    RATE_LIMIT: `${LIMIT}/h`,
    EXPORT_LIMIT: '1000',
    API_KEYS_FILE: keysFile,
    ...jwtSettings(issuer),
  });
  const rights = { resources: ['items'], actions: ['read'] };
  const headersOf = async (sub: string) => ({
    authorization: `Bearer ${await tokenOf(pair, { sub, sluice: rights })}`,
    connection: 'close', // another worker may answer the next request
  });
  return { url: server.url.href.replace(/\/$/, ''), headersOf };
}

/** Resolves with an export when it is made. Rejects with its state when that takes too long. */
async function made(url: string, id: string, headers: Record<string, string>): Promise<Export> {
  const latest = Date.now() + LATEST_MS;
  return awaited(
    url,
    id,
    (found) => {
      if (Date.now() > latest) assert.fail(`not made within ${LATEST_MS} ms: ${JSON.stringify(found)}`);
      return found.state === 'complete';
    },
    headers,
  );
}

/** Tests that exports, limits and requests outlast what happens to the server of a place while clients are busy. */
export function testFailover(
  place: string,
  openPlace: (t: TestContext) => Promise<TestRedises | null>,
): void {
  for (const [name, harm] of Object.entries(HARMS))
    test(
      `${place} ${name} under load: each export is made, limits hold, and each request is answered`,
      { timeout: 2 * LATEST_MS },
      async (t) => {
        const redises = await openPlace(t);
        if (!redises) return;
        const { url, headersOf } = await serverOf(t, redises.url);
        const busy = bearer('busy');
        const ask = async (headers: Record<string, string>) =>
          (await fetch(`${url}/items?limit=1`, { headers })).status;
        const subjects = await Promise.all(Array.from({ length: 12 }, (_, n) => headersOf(`subject-${n}`)));
        const orders = [(await order(url, { category: 'Fair' }, busy)).id];
        await made(url, orders[0] ?? '', busy);
        for (const headers of subjects) {
          const statuses: number[] = [];
          for (let n = 0; n <= LIMIT; n++) statuses.push(await ask(headers));
          assert.deepEqual(statuses, [...Array.from({ length: LIMIT }, () => 200), 429]);
        }

        const statuses = new Set<number>();
        let admitted = 0;
        const load = again(async () => {
          for (const headers of subjects) {
            const status = await ask(headers);
            statuses.add(status);
            if (status === 200) admitted++;
          }
          statuses.add(await ask(busy));
          if (orders.length < MOST_ORDERS) orders.push((await order(url, {}, busy)).id);
        });
        await load.until(() => orders.length > 5);
        const former = await redises.holderOf('sluice:*exports-*');
        await harm(former, t);
        await redises.replaced(former);
        const asked = orders.length;
        await load.until(() => orders.length > Math.min(asked + 3, MOST_ORDERS - 1));
        await load.end();

        assert.deepEqual([...statuses].sort(), [200, 429], 'no request fails, and each token is valid');
        // While a counter cannot be reached, each process counts by itself.
        assert.ok(admitted <= subjects.length * LIMIT * WORKERS, `${admitted} admitted`);
        for (const id of orders.slice(1)) {
          const done = await made(url, id, busy);
          assert.equal(done.progress.rows, ROWS);
        }
        for (const headers of subjects) assert.equal(await ask(headers), 429, 'the replica has the counter');
      },
    );
}
