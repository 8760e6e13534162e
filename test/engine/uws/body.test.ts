import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { CORK_BYTES } from '../../../src/engine/cork.ts';
import { UwsBody } from '../../../src/engine/uws/body.ts';
import type { BodyResponse } from '../../../src/engine/uws/pieces.ts';
import { StallError, StallTimer } from '../../../src/engine/stall-timer.ts';

const HEAD_BYTES = 300;
const STALL_MS = 60_000;

// The stall timer's own checks do not run; `pass` runs them.
mock.timers.enable({ apis: ['setInterval'] });

/** A response like that of uWebSockets.js. Its socket takes `room` bytes until the test gives it more. */
class FakeResponse implements BodyResponse {
  room = Infinity;
  /** The bytes that the socket took, and those that uWebSockets.js holds because it did not. */
  taken = '';
  held = '';
  ended = false;
  timesRearmed = 0;
  private corkBytes = 0;
  private corkWrites = 0;

  cork(action: () => void): never {
    this.corkBytes = 0;
    this.corkWrites = 0;
    action();
    assert.ok(this.corkBytes <= CORK_BYTES, `${this.corkBytes} bytes in a cork`);
    assert.ok(this.corkWrites <= 2, `${this.corkWrites} writes in a cork`);
    this.drain();
    return undefined as never;
  }

  writeHead(): void {
    this.corkBytes += HEAD_BYTES;
  }

  write(piece: Uint8Array): boolean {
    assert.ok(!this.ended);
    this.corkWrites++;
    this.corkBytes += piece.length + 8;
    this.held += Buffer.from(piece).toString('latin1');
    this.drain();
    return this.held === '';
  }

  end(): never {
    this.ended = true;
    return undefined as never;
  }

  tryEnd(bytes: Uint8Array, length: number): [boolean, boolean] {
    assert.ok(!this.ended);
    const taken = Buffer.from(bytes.subarray(0, this.room)).toString('latin1');
    this.taken += taken;
    this.room -= taken.length;
    this.ended = this.taken.length === length;
    return [taken.length === bytes.length, this.ended];
  }

  getWriteOffset(): number {
    return this.taken.length;
  }

  pause(): void {
    // resume sets the timer
  }

  resume(): void {
    this.timesRearmed++;
  }

  private drain(): void {
    const taken = this.held.slice(0, this.room);
    this.taken += taken;
    this.held = this.held.slice(taken.length);
    this.room -= taken.length;
  }
}

/** `length`: of the whole body, where it is known. */
function setUp(length: number | null = null) {
  const response = new FakeResponse();
  const controller = new AbortController();
  let time = 0;
  const stallTimer = new StallTimer(STALL_MS, () => time);
  const events: (string | Error)[] = [];
  const owner = {
    signal: controller.signal,
    cut(reason: unknown) {
      events.push(reason as Error);
      controller.abort(reason);
      stream.lost(reason);
    },
    ended: () => events.push('ended'),
  };
  const head = { bytes: HEAD_BYTES, write: () => response.writeHead() };
  const stream: UwsBody = new UwsBody({ response, owner, stallTimer, head, length, closes: false });
  /** Lets the socket take `bytes` more and report that it is writable. */
  const writable = (bytes = Infinity) => {
    response.room = bytes;
    stream.writable();
  };
  /** Lets time pass, with one check per second as the stall timer does. */
  const pass = (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      time += 1000;
      stream.check();
    }
  };
  return { response, stream, events, writable, pass };
}

/** Whether a promise is settled after all due callbacks have run. */
async function settled(promise: void | Promise<void>): Promise<boolean> {
  let done = false;
  void Promise.resolve(promise).then(() => (done = true));
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

const A = Buffer.alloc(10_000, 'a');
const B = Buffer.alloc(10_000, 'b');

describe('a chunked body on uWebSockets.js', () => {
  it('makes its writer wait when the socket is full, and continues when it is writable', async () => {
    const { response, stream, writable } = setUp();
    void stream.write(A);
    response.room = 1000;
    const waits = stream.write(B);
    assert.equal(await settled(waits), false);
    assert.ok(response.held.length <= B.length - 1000, 'no more than one write is held');
    writable();
    assert.equal(await settled(waits), true);
    await stream.end();
    assert.equal(response.taken, A.toString() + B.toString());
    assert.ok(response.ended);
  });

  it('copies the bytes that it keeps, so that the writer can reuse its memory', async () => {
    const { response, stream, writable } = setUp();
    response.room = 0;
    const memory = Buffer.alloc(50_000, 'm');
    const waits = stream.write(memory);
    memory.fill('X');
    for (let i = 0; i < 10; i++) writable();
    await waits;
    await stream.end();
    assert.equal(response.taken, 'm'.repeat(50_000));
  });

  it('drains the buffer of uWebSockets.js when the socket is writable and nothing else waits', () => {
    const { response, stream, writable } = setUp();
    response.room = 0;
    void stream.write(A);
    writable();
    assert.equal(response.held, '');
    assert.ok(response.taken.length > A.length - 100);
  });

  it('accepts one more chunk when it is full without a reserve, to keep bytes for probes', async () => {
    const { response, stream } = setUp();
    void stream.write(A);
    response.room = 0;
    void stream.flush();
    const waits = stream.write(B);
    assert.equal(await settled(waits), false);
    assert.ok(response.held.length < 100, 'it is not added to the held bytes');
  });

  it('sends its reserve when the writer pauses', async () => {
    const { response, stream, writable, pass } = setUp();
    response.room = 0;
    void stream.write(A);
    void stream.write(B);
    writable();
    assert.ok(response.taken.length < A.length + B.length, 'some bytes are kept for probes');
    pass(1);
    assert.equal(response.taken, A.toString() + B.toString());
    assert.equal(await settled(stream.write(Buffer.from('more'))), true);
  });

  it('restarts the timer of a blocked connection with almost no bytes until the stall time ends', () => {
    const { response, stream, pass } = setUp();
    response.room = 0;
    void stream.write(A);
    void stream.write(B);
    pass(STALL_MS / 1000 - 1);
    assert.ok(response.held.length - A.length < 64, 'a stalled reader costs no memory');
    assert.equal(response.ended, false);
  });

  it('restarts the timer when the socket takes bytes without reporting it', () => {
    const { response, stream, pass } = setUp();
    response.room = 0;
    void stream.write(A);
    response.room = Infinity; // a probe is accepted, and nothing is left that could block
    pass(30);
    assert.ok(response.timesRearmed >= 9, `${response.timesRearmed} times in 30 s`);
  });

  it('counts an accepted write as activity, and stalls when none is accepted', async () => {
    const { response, stream, events, pass } = setUp();
    response.room = 0;
    void stream.write(A);
    const waits = stream.write(B);
    pass(STALL_MS / 1000 - 4);
    response.room = 12_000; // the reader takes a little, at the last moment; the kernel does not say "writable"
    pass(STALL_MS / 1000 - 1);
    assert.deepEqual(events, []);
    const rejected = assert.rejects(Promise.resolve(waits), StallError);
    pass(4);
    assert.equal(events.length, 1);
    await rejected;
    assert.throws(() => void stream.write(A), StallError);
  });

  it('ends only after all bytes before were taken', async () => {
    const { response, stream, events, writable, pass } = setUp();
    response.room = 0;
    void stream.write(A);
    void stream.write(B);
    const ends = stream.end();
    assert.equal(await settled(ends), false);
    pass(4);
    assert.equal(response.ended, false);
    writable(12_000);
    assert.equal(response.ended, false);
    writable();
    assert.equal(await settled(ends), true);
    assert.equal(response.taken, A.toString() + B.toString());
    assert.deepEqual(events, ['ended']);
  });

  it('does not touch the response after the connection is lost', async () => {
    const { response, stream, writable, pass } = setUp();
    response.room = 0;
    const waits = assert.rejects(Promise.resolve(stream.write(A)), /gone/);
    stream.fail(new Error('gone'));
    await waits;
    response.cork = () => assert.fail('touched');
    writable();
    pass(10);
    assert.throws(() => void stream.write(B), /gone/);
    assert.throws(() => void stream.end(), /gone/);
  });
});

describe('a body of known length on uWebSockets.js', () => {
  it('makes its writer wait for the bytes that the socket did not take, and copies them', async () => {
    const { response, stream, events, writable } = setUp(A.length + B.length);
    response.room = 1_000;
    const memory = Buffer.from(A);
    const waits = stream.write(memory);
    memory.fill('X');
    writable(4_000);
    assert.deepEqual([stream.sent, await settled(waits)], [5_000, false]);
    writable();
    assert.equal(await settled(waits), true);
    assert.equal(stream.write(B), undefined);
    void stream.end();
    assert.equal(response.taken, A.toString() + B.toString());
    assert.deepEqual([stream.sent, events], [A.length + B.length, ['ended']]);
  });

  it('passes on what is behind a flush, although the socket takes it later', async () => {
    const { response, stream, events, writable } = setUp(A.length + 2);
    void stream.write(A);
    response.room = 1;
    const waits = stream.flush(Buffer.from('{}'));
    assert.equal(await settled(waits), false);
    writable();
    assert.equal(await settled(waits), true);
    assert.deepEqual([response.taken, events], [`${A.toString()}{}`, ['ended']]);
  });

  it('does not end with fewer bytes than were announced, and takes no more', () => {
    const { stream, events } = setUp(A.length);
    void stream.write(A.subarray(1));
    assert.throws(() => void stream.end(), /fewer than the 10000 bytes/);
    void stream.write(A.subarray(0, 1));
    assert.throws(() => void stream.write(A), /ended already/);
    assert.deepEqual(events, ['ended']);
  });

  it('counts bytes that the socket takes without reporting it as activity, and stalls when it takes none', async () => {
    const { response, stream, events, pass } = setUp(A.length);
    response.room = 0;
    const waits = stream.write(A);
    pass(STALL_MS / 1000 - 4);
    response.room = 100;
    pass(STALL_MS / 1000 - 1);
    assert.deepEqual([events, response.taken.length], [[], 100]);
    const rejected = assert.rejects(Promise.resolve(waits), StallError);
    pass(4);
    assert.equal(events.length, 1);
    await rejected;
  });

  it('tries often whether the socket takes bytes, so that the timer of uWebSockets.js does not end', () => {
    const { response, stream, pass } = setUp(A.length);
    response.room = 0;
    assert.equal(stream.writeWhole(A), false);
    let tries = 0;
    response.tryEnd = () => (tries++, [false, false]);
    pass(30);
    assert.ok(tries >= 9, `${tries} times in 30 s`);
  });
});
