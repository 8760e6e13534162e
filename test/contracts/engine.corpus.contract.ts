import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { allOf, BEHIND, type Case } from '../support/engine/corpus/case.ts';
import { CORPUS } from '../support/engine/corpus/corpus.ts';
import { DEVIATIONS, SILENT } from '../support/engine/corpus/deviations.ts';
import { text, type EngineName, type Serving } from '../support/engine/engines.ts';
import { RawClient } from '../support/engine/raw.ts';

const LONG = process.env.LONG === '1';
/** The share of cases that are also sent byte by byte. With LONG it is every case. */
const BY_BYTES = 8;
/** Cases are cut at so many places, each at one. With LONG each is cut at every byte. */
const PLACES = 4;
const LONGEST_BY_BYTES = 400;

/** All requests of the corpus: whole, byte by byte, and cut. */
export function corpusContract(serving: Serving, name: EngineName): void {
  describe(`the ${CORPUS.length} raw requests of the corpus`, () => {
    it(`have their expected outcomes, but for the deviations that are listed; ${LONG ? 'all' : `every ${BY_BYTES}th`} also byte by byte`, async (t) => {
      const outcomeOf = await recording(t, serving);
      const others: Record<string, string> = {};
      for (const [at, one] of CORPUS.entries()) {
        const listed = DEVIATIONS[name][one.name];
        // A request that may get no answer is sent by a client that then leaves.
        const asked = listed === undefined ? one : { ...one, waits: true };
        const whole = await outcomeOf(asked, [allOf(one)]);
        const slow = LONG || at % BY_BYTES === 0 ? await outcomeOf(asked, slowly(one)) : whole;
        if (listed === SILENT && !/[A-Z]/.test(whole + slow)) others[one.name] = SILENT;
        else if (!one.outcomes.includes(whole)) others[one.name] = whole;
        if (listed === undefined) assert.ok(one.outcomes.includes(slow), `${one.name}, by bytes: ${slow}`);
      }
      assert.deepEqual(others, DEVIATIONS[name]);
    });

    it(`are never taken for another request when they are cut at ${LONG ? 'any byte' : 'some byte'}, and the server goes on`, async (t) => {
      const outcomeOf = await recording(t, serving);
      for (const [at, one] of CORPUS.entries()) {
        const known = [...one.outcomes, DEVIATIONS[name][one.name] ?? ''];
        for (const end of cutsOf(one, at)) {
          const cut = await outcomeOf({ ...one, waits: true }, [one.bytes.slice(0, end)]);
          const ran = cut.replace(/ then cut$/, '');
          assert.ok(
            /^(cut|\d+)$/.test(cut) || known.some((outcome) => outcome.startsWith(ran)),
            `${one.name}, cut at ${end}: ${cut}`,
          );
        }
      }
      const [first] = CORPUS;
      assert.ok(first);
      assert.equal(await outcomeOf(first, [BEHIND]), 'the one behind');
    });
  });
}

/** One byte per piece. A longer case tests lengths and is sent in one piece. */
function* slowly(one: Case): Generator<string> {
  if (one.bytes.length > LONGEST_BY_BYTES) yield one.bytes;
  else yield* one.bytes;
  yield allOf(one).slice(one.bytes.length);
}

function cutsOf({ bytes }: Case, at: number): readonly number[] {
  if (LONG && bytes.length <= LONGEST_BY_BYTES) return Array.from({ length: bytes.length }, (_, at) => at);
  return [Math.floor((bytes.length * (1 + (at % PLACES))) / (PLACES + 1))];
}

/**
 * A server, and what it makes of pieces that are sent to it on a connection of their own, in turns of the event loop of
 * their own: the requests that ran, `then cut` when the one behind did not; else the status of the refusal; else `cut`.
 */
async function recording(t: TestContext, serving: Serving) {
  let ran: string[] = [];
  const { port } = await serving(t, async (request) => {
    const { method, path, query } = request;
    const own = ran;
    const place = own.push('') - 1; // node:http passes on the next request before the body of this one has arrived
    const body = Buffer.from(await request.body()).toString('latin1');
    own[place] = `${method} ${path}${query && `?${query}`}${body && ` <${body}>`}`;
    return text('ran');
  });
  return async ({ waits }: Case, pieces: Iterable<string>): Promise<string> => {
    ran = [];
    const client = await RawClient.connect(t, port);
    for (const piece of pieces) {
      client.send(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (waits) client.socket.end();
    const answer = await client.untilClosed();
    const requests = ran.filter((request) => request !== '');
    const inOrder = requests.at(-1) === 'GET /behind';
    if (inOrder) requests.pop();
    const refusal = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)]
      .map(([, status]) => status)
      .find((status) => status !== '200');
    if (requests.length === 0) return inOrder ? 'the one behind' : (refusal ?? 'cut');
    return requests.join(', ') + (inOrder ? '' : ' then cut');
  };
}
