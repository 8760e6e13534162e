import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import { AppError, storeUnavailable } from '../../../../src/base/errors.ts';
import { BSON, Long, type Document } from '../../../../src/store/values/bson.ts';
import { CommandTail } from '../../../../src/store/mongo/lane/command.ts';
import { Lane, type FindWay, type Reply } from '../../../../src/store/mongo/lane/lane.ts';
import { Members } from '../../../../src/store/mongo/lane/members.ts';
import { openConnection } from '../../../../src/store/mongo/lane/connection.ts';
import { Pool } from '../../../../src/store/mongo/lane/pool.ts';
import { isForgotten, mayRetry, translate } from '../../../../src/store/mongo/errors.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import { fakeMongod, opMsg, type Asked } from '../../../support/store/mongo/fake-mongod.ts';
import { newMemory } from '../../../support/store/new-memory.ts';
import { NEVER } from '../../../support/store/reading.ts';

/** The error with which the lane hands a read to the driver. */
const TO_DRIVER = storeUnavailable(new Error('the driver was asked'));
const FIND = { find: 'items', limit: 3, batchSize: 3 };
const ROWS = [1, 2, 3].map((_id) => ({ _id, text: 'x'.repeat(30_000) }));
const ANSWER = { cursor: { firstBatch: ROWS, id: new Long(0), ns: 'a.items' }, ok: 1 };

const EMPTY = { ...ANSWER, cursor: { ...ANSWER.cursor, firstBatch: [] } };

/** How long a chain waits for a member. Milliseconds. */
const MEMBER_MS = 200;

interface Opened {
  readonly lane: Lane;
  readonly slots: Slots;
  readonly members: Members;
  readonly session: ReturnType<MongoClient['startSession']>;
}

interface LaneOptions {
  readonly silenceMs?: number;
  readonly size?: number;
  /** The answers of a secondary. With one, the server is a primary, and a chain waits only MEMBER_MS for it. */
  readonly second?: (asked: Asked) => void;
}

/** A lane to a server whose answers, except to `hello`, the test gives, beside a driver that always refuses. */
async function openLane(
  t: TestContext,
  onCommand: (asked: Asked) => void,
  { silenceMs = 60_000, size = 10, second }: LaneOptions = {},
): Promise<Opened> {
  const address = await fakeMongod(t, onCommand);
  const slots = new Slots();
  const session = new MongoClient('mongodb://nowhere').startSession();
  const connect = { tls: false, connectTimeoutMS: 5_000 };
  const open = { slots, connect, scram: null, applicationName: 'test', silenceMs };
  const newPool = (address: string) =>
    new Pool({
      open: (onEnd) => openConnection(address, open, onEnd),
      size,
      waitMs: 60_000,
      onRefusal: () => undefined,
    });
  const members = new Members('primaryPreferred', 15, newPool);
  const servers = new Map([[address, { type: second ? 'RSPrimary' : 'Standalone', roundTripTime: 1 }]]);
  if (second) servers.set(await fakeMongod(t, second), { type: 'RSSecondary', roundTripTime: 1 });
  members.update({ type: second ? 'ReplicaSetWithPrimary' : 'Single', servers });
  const driver: FindWay = { find: () => Promise.reject(TO_DRIVER) };
  const tailFor = ($db: string) => new CommandTail(session, { $db });
  const onWarning = () => undefined;
  const lane = new Lane({
    members,
    session,
    tailFor,
    driver,
    database: 'a',
    memberTimeoutMs: MEMBER_MS,
    onWarning,
    errors: { isForgotten, mayRetry, translate },
  });
  t.after(() => lane.close());
  return { lane, slots, members, session };
}

/** The documents of a reply. Releases the reply. */
function documentsOf({ slot, start, length }: Reply): Document[] {
  const rows = Buffer.from(slot.bytes(start + length).subarray(start));
  slot.release();
  const array = Buffer.concat([Buffer.alloc(4), rows, Buffer.alloc(1)]);
  array.writeInt32LE(array.length, 0);
  return Object.values<Document>(BSON.deserialize(array));
}

/** Resolves when a socket is closed. A reset counts, because the other side closes that way. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => {
      resolve();
    });
  });
}

const turn = promisify(setImmediate);

/** A valid answer after a modification. */
function damaged(damage: (message: Buffer) => Buffer | undefined) {
  return (requestId: number) => {
    const message = opMsg(requestId, ANSWER);
    return damage(message) ?? message;
  };
}

const write = (at: number, value: number) =>
  damaged((message) => {
    message.writeInt32LE(value, at);
    return undefined;
  });

const BROKEN: readonly (readonly [string, (requestId: number) => Buffer])[] = [
  ['text', () => Buffer.from('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
  ['zeros', () => Buffer.alloc(100)],
  ['a length below any message', write(0, 20)],
  ['a negative length', write(0, -1)],
  ['a length above 48 MB', write(0, 48_000_001)],
  ['an answer to another request', write(8, 77)],
  ['another operation', write(12, 1)],
  ['flags', write(16, 2)],
  ['a document shorter than its message', write(21, 100)],
  ['a document longer than its message', write(21, 100_000)],
  ['another kind of section', damaged((message) => Buffer.from(message.fill(1, 20, 21)))],
  ['more than the answer', (requestId) => Buffer.concat([opMsg(requestId, EMPTY), Buffer.alloc(1)])],
  [
    'an array longer than the document',
    write(21 + 4 + 'X'.length + 'cursor\0'.length + 4 + 'XfirstBatch\0'.length, 0x7fffffff),
  ],
  ['an unknown type', damaged((message) => Buffer.from(message.fill(0x55, 25, 26)))],
  ['no cursor', (requestId) => opMsg(requestId, { ok: 1 })],
  ['a cursor without rows', (requestId) => opMsg(requestId, { cursor: { id: new Long(0) }, ok: 1 })],
  ['a cursor that is a number', (requestId) => opMsg(requestId, { cursor: 1, ok: 1 })],
];

for (const [what, answer] of BROKEN)
  test(`a server that answers with ${what} is dropped, and the driver is asked`, async (t) => {
    let gone: Promise<unknown> = Promise.resolve();
    const { lane, slots } = await openLane(t, ({ requestId, socket }) => {
      gone = closed(socket);
      socket.write(answer(requestId));
    });
    await assert.rejects(lane.find(FIND, NEVER), TO_DRIVER);
    await gone;
    assert.equal(slots.taken, 0);
  });

test('an answer that is cut at any byte is refused', async (t) => {
  let length = 0;
  const { lane, slots } = await openLane(t, ({ requestId, socket }) => {
    socket.end(opMsg(requestId, ANSWER).subarray(0, length));
  });
  const whole = opMsg(0, ANSWER).length;
  for (length of [0, 1, 15, 16, 20, 40, 32_767, 32_768, 32_769, whole - 1]) {
    await assert.rejects(lane.find(FIND, NEVER), TO_DRIVER, `after ${length} bytes`);
    assert.equal(slots.taken, 0);
  }
  length = whole;
  assert.deepEqual(documentsOf(await lane.find(FIND, NEVER)), ROWS);
});

test('an answer is read whole however it is split into packets, also when the memory grows meanwhile', async (t) => {
  const sizes = [1, 3, 16, 21, 32_768, 65_536];
  let size = 0;
  const { lane, slots } = await openLane(t, ({ requestId, socket }) => {
    const message = opMsg(requestId, ANSWER);
    const send = (from: number) => {
      const to = from < 64 ? from + size : from + Math.max(size, 8_000);
      // Its own packet: the next one is sent a turn after this one was taken.
      socket.write(message.subarray(from, to), () => {
        slots.memory.grow(1);
        if (to < message.length) setImmediate(send, to);
      });
    };
    send(0);
  });
  const before = slots.memory.buffer.byteLength;
  for (size of sizes) assert.deepEqual(documentsOf(await lane.find(FIND, NEVER)), ROWS, `packets of ${size}`);
  assert.ok(slots.memory.buffer.byteLength > before, 'the memory grew');
  assert.equal(slots.taken, 0);
});

test('the memory is not replaced in the middle of an answer', async (t) => {
  const { lane, slots } = await openLane(t, ({ requestId, socket }) => {
    const message = opMsg(requestId, ANSWER);
    socket.write(message.subarray(0, 50_000));
    const sendRest = () => {
      if (slots.taken === 0) return void setImmediate(sendRest); // its first bytes have not arrived yet
      if (slots.memory === memory) lookForNew();
      socket.write(message.subarray(50_000));
    };
    sendRest();
  });
  const lookForNew = newMemory(t, slots);
  const { memory } = slots;
  assert.deepEqual(documentsOf(await lane.find(FIND, NEVER)), ROWS);
  lookForNew();
  assert.notEqual(slots.memory, memory, 'it is afterwards');
  assert.deepEqual(documentsOf(await lane.find(FIND, NEVER)), ROWS);
});

test('a client that leaves in the middle of an answer is rejected at once, and its slot is released', async (t) => {
  const leaving = new AbortController();
  const reason = new Error('the client has left');
  let gone: Promise<unknown> = Promise.resolve();
  const { lane, slots } = await openLane(t, ({ requestId, socket }) => {
    gone = closed(socket);
    socket.write(opMsg(requestId, ANSWER).subarray(0, 50_000), () => setImmediate(leave));
  });
  const leave = () => {
    if (slots.taken === 0) return void setImmediate(leave); // its first bytes have not arrived yet
    leaving.abort(reason);
  };
  await assert.rejects(lane.find(FIND, leaving.signal), reason);
  await gone;
  assert.equal(slots.taken, 0);
});

test('a server that is silent, or sends a byte now and then, becomes unavailable', async (t) => {
  for (const [what, bytes] of [
    ['silent', 0],
    ['slow', 1],
  ] as const) {
    const { lane, slots } = await openLane(
      t,
      ({ requestId, socket }) => {
        const message = opMsg(requestId, ANSWER);
        let at = 0;
        const timer = setInterval(() => socket.write(message.subarray(at, (at += bytes))), 20);
        socket.once('close', () => {
          clearInterval(timer);
        });
      },
      { silenceMs: 150 },
    );
    const isUnavailable = (error: unknown) =>
      error instanceof AppError && error !== TO_DRIVER && error.code === 'store-unavailable';
    await assert.rejects(lane.find(FIND, NEVER), isUnavailable, what);
    assert.equal(slots.taken, 0);
  }
});

test('a refusal by the server is thrown as its error, and the connection is kept', async (t) => {
  const sockets = new Set<unknown>();
  const { lane, slots } = await openLane(t, ({ command, requestId, socket }) => {
    sockets.add(socket);
    const refusal = { ok: 0, errmsg: 'bad hint', code: 2, codeName: 'BadValue' };
    socket.write(opMsg(requestId, 'hint' in command ? refusal : ANSWER));
  });
  await assert.rejects(lane.find({ ...FIND, hint: 'gone' }, NEVER), { name: 'MongoServerError', code: 2 });
  assert.deepEqual(documentsOf(await lane.find(FIND, NEVER)), ROWS);
  assert.equal(sockets.size, 1);
  assert.equal(slots.taken, 0);
});

test('finds beyond the number of connections wait for one, unless their clients leave', async (t) => {
  const asked: Asked[] = [];
  const { lane, slots } = await openLane(
    t,
    (command) => {
      asked.push(command);
    },
    { size: 2 },
  );
  const leaving = new AbortController();
  const finds = [NEVER, NEVER, leaving.signal, NEVER].map((signal) => lane.find(FIND, signal));
  const reason = new Error('the client has left');
  leaving.abort(reason);
  for (const left of finds.splice(2, 1)) await assert.rejects(left, reason);
  const sockets = new Set<unknown>();
  const answered = Promise.all(finds);
  let answers = 0;
  while (answers < 3) {
    for (const { requestId, socket } of asked.splice(0)) {
      sockets.add(socket);
      socket.write(opMsg(requestId, ANSWER));
      answers++;
    }
    await turn();
  }
  for (const reply of await answered) assert.deepEqual(documentsOf(reply), ROWS);
  assert.equal(sockets.size, 2);
  assert.equal(slots.taken, 0);
});

test('reads on a member that the driver loses sight of are handed to the driver', async (t) => {
  let asked: (() => void) | undefined;
  const { lane, slots, members } = await openLane(t, () => {
    asked?.();
  });
  const hanging = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const finding = lane.find(FIND, NEVER);
  await hanging;
  members.update({ type: 'Single', servers: new Map() });
  await assert.rejects(finding, TO_DRIVER);
  await assert.rejects(lane.find(FIND, NEVER), TO_DRIVER);
  assert.equal(slots.taken, 0);
});

test('a member that does not answer in mid-chain is left for another one, and is then not asked', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked: number[] = [];
  const silent = () => {
    asked.push(1);
    t.mock.timers.tick(MEMBER_MS);
  };
  const { lane, slots } = await openLane(t, silent, {
    second: ({ requestId, socket }) => {
      asked.push(2);
      socket.write(opMsg(requestId, ANSWER));
    },
  });
  for (const expected of [
    [1, 2],
    [1, 2, 2],
  ]) {
    const reply = await lane.find(FIND, NEVER, { since: 1n });
    assert.deepEqual(documentsOf(reply), ROWS);
    assert.deepEqual(asked, expected);
  }
  assert.equal(slots.taken, 0);
});

test('a member that skips to a row at a point in time is waited for, though there is another one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked: number[] = [];
  const answer =
    (member: number) =>
    ({ requestId, socket }: Asked) => {
      asked.push(member);
      if (member === 1) t.mock.timers.tick(10_000);
      socket.write(opMsg(requestId, ANSWER));
    };
  const { lane } = await openLane(t, answer(1), { second: answer(2) });
  assert.deepEqual(documentsOf(await lane.find({ ...FIND, skip: 999_999 }, NEVER, { at: 1n })), ROWS);
  assert.deepEqual(asked, [1]);
  assert.deepEqual(documentsOf(await lane.find(FIND, NEVER, { at: 1n, since: 1n })), ROWS);
  assert.deepEqual(asked, [1, 1, 2], 'in mid-chain another member is asked');
});

test('the cursor of an answer that reached 16 MB is killed on its own connection', async (t) => {
  const killed: Document[] = [];
  const { lane } = await openLane(t, ({ command, requestId, socket }) => {
    if ('killCursors' in command) killed.push(command);
    const { cursor, ok } = ANSWER;
    const answer =
      'find' in command ? { cursor: { ...cursor, id: Long.fromBigInt(2n ** 62n + 1n) }, ok } : { ok };
    socket.write(opMsg(requestId, answer));
  });
  const reply = await lane.find(FIND, NEVER);
  assert.equal(reply.cut, true);
  assert.deepEqual(documentsOf(reply), ROWS);
  assert.deepEqual(
    killed.map(({ killCursors, cursors }) => `${String(killCursors)} ${String(cursors)}`),
    [`items ${2n ** 62n + 1n}`],
  );
});
