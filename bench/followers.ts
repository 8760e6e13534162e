/**
 * node bench/followers.ts URL COUNT
 *
 * Follows a feed on COUNT connections with the followers of `sluice load`. It is a process of its own, because a process
 * that measures something else must not do this work as well. A line of stdin is a text to look for, and is answered at
 * once. An empty line is answered with the time, in milliseconds since 1970, when every follower has received the text.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Faults } from '../src/load/faults.ts';
import { Followers } from '../src/load/followers.ts';
import { Requests } from '../src/load/http/requests.ts';
import { Recorder } from '../src/load/recorder.ts';

const [address = '', number = ''] = process.argv.slice(2);
const url = new URL(address);
const count = Number(number);
/** Followers that do not begin for so long, or that a text does not reach, are an error. Milliseconds. */
const MOST_MS = 60_000;
const LOOK_AGAIN_MS = 20;

const recorder = new Recorder(
  () => performance.now(),
  () => ({
    asked: null,
    waiting: 0,
    streams: 0,
    followers: count,
    client: { cpu: 0, loopDelay: 0, memory: 0 },
  }),
);
const followers = new Followers({
  requests: new Requests(url, null),
  path: url.pathname,
  count,
  write: null,
  recorder,
  faults: new Faults(),
});
let reached: Promise<void> = Promise.resolve();

async function within<T>(what: string, work: Promise<T>): Promise<T> {
  const late = sleep(MOST_MS, null, { ref: false }).then(() => {
    throw new Error(`${count} followers of ${address} ${what}`);
  });
  return Promise.race([work, late]);
}

async function allOpen(): Promise<void> {
  while (followers.open < count) await sleep(LOOK_AGAIN_MS);
}

async function answer(text: string): Promise<object> {
  if (text !== '') {
    reached = followers.look(text);
    return { text };
  }
  await within('were not reached', reached);
  const { arrivals, cut, wrong } = recorder.whole.counts;
  if (arrivals > count) throw new Error(`followers of ${address} began again: ${cut} cuts, ${wrong} wrong`);
  return { at: performance.timeOrigin + performance.now() };
}

await followers.start();
await within('did not begin', allOpen());
process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
process.exit(); // the sockets are open
