import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { problemOf } from '../support/answers.ts';
import { childServer, logged } from '../support/process/child-server.ts';
import { filled } from '../support/resources/resources.ts';
import { serverOn, type EngineName } from '../support/process/server.ts';

const METER = pathToFileURL(join(import.meta.dirname, '../support/process/loop-hold.mjs')).href;
/** A body may have 1 MiB. */
const MOST = 2 ** 20;
const TIMES = 3;
/** The longest turn of the event loop in CPU time, of the quickest of TIMES attempts. Milliseconds. */
const MOST_MS = 50;

/** The beginning of a text, then a piece as often as it takes, then the end: as long as a body may be. */
function filledUp(begin: string, piece: string, end: string): string {
  return begin + piece.repeat(Math.floor((MOST - begin.length - end.length) / piece.length)) + end;
}

const ORDERS = { name: 'orders', rows: [{ _id: 1, total: 5 }], indexes: [['total']] };

/** Bodies at their limit, by what is long in them. All of them are refused. */
const BODIES: Readonly<Record<string, string>> = {
  'a fraction': filledUp('{"resource":"orders","total.gte":0.', '1', '}'),
  'a whole number': filledUp('{"resource":"orders","total":', '7', '}'),
  'a number of zeros': filledUp('{"resource":"orders","total.lte":1', '0', '}'),
  'zeros before a fraction': filledUp('{"resource":"orders","total.gte":0.', '0', '1e9}'),
  'a number as text': filledUp('{"resource":"orders","total.gte":"0.', '1', '"}'),
  'a text': filledUp('{"resource":"orders","total.eq":"', 'ü', '"}').slice(0, 500_000) + '"}',
  'an exponent': filledUp('{"resource":"orders","total.gte":1e', '9', '}'),
  'an order': filledUp('{"resource":"orders","sort":"', '_a', '_asc"}'),
  'the name of the resource': filledUp('{"resource":"', 'x', '"}'),
  'the name of a member': filledUp('{"', 'x', '":1}'),
  'a list of fields': filledUp('{"resource":"orders","fields":["total"', ',"x"', ']}'),
  'a path': filledUp('{"resource":"orders","fields":["', 'a.', 'b"]}'),
  blanks: filledUp('{"resource":"none"', ' ', '}'),
};

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`${engine}: no order holds the event loop for over ${MOST_MS} ms, whatever is long in it`, async (t) => {
    const server = await childServer(t, {
      ...(await filled(t, 'sqlite', [ORDERS])),
      SAMPLE: 'off',
      HTTP_ENGINE: engine,
      NODE_OPTIONS: `--import ${METER}`,
    });
    const held = async () => {
      process.kill(server.pid, 'SIGUSR2');
      return (await logged(server, 'held')).longest ?? Infinity;
    };
    for (const path of ['/exports', '/api/users'])
      for (const [name, body] of Object.entries(BODIES)) {
        let least = Infinity;
        for (let n = 0; n < TIMES && least > MOST_MS; n++) {
          await held();
          const answer = await fetch(new URL(path, server.url), {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body,
          });
          await answer.text();
          assert.equal(answer.status, 422, `${path}: ${name}`);
          least = Math.min(least, await held());
        }
        t.diagnostic(`${path}, ${name}: ${least.toFixed(1)} ms`);
        assert.ok(least <= MOST_MS, `${path}, ${name}: ${least} ms`);
      }
  });

test('an order asks for no more than a URL can, and the fault names its longest member', async (t) => {
  const server = await serverOn(t, await filled(t, 'sqlite', [ORDERS]));
  const order = (body: object) =>
    fetch(`${server.url}/exports`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const { code, detail } = await problemOf(
    order({ resource: 'orders', total: `0.${'1'.repeat(14_336)}`, sort: 'id_asc' }),
  );
  assert.equal(code, 'invalid-body');
  assert.match(detail, /^\/total: expected at most 14336 bytes in the query of the order/);
});

test('the exports of a client are counted before an order is read', async (t) => {
  const server = await serverOn(t, { EXPORT_LIMIT: '1' });
  const order = (body: object) =>
    fetch(`${server.url}/exports`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  assert.equal((await order({ nope: 1 })).status, 422);
  assert.equal((await order({})).status, 202);
  assert.equal((await order({ nope: 1 })).status, 429);
});
