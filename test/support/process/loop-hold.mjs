/**
 * node --import loop-hold.mjs: measures how long the main thread computes between two turns of its event loop, in CPU time, so that a
 * machine that does other things too changes nothing. On each SIGUSR2 it writes what there was since the last one, and
 * since the first, as a line of the log. Linux only.
 */
import { openSync, readSync } from 'node:fs';
import { createHistogram } from 'node:perf_hooks';

const TURN_MS = 1;

const schedule = openSync('/proc/thread-self/schedstat');
const text = Buffer.alloc(100);
let held = createHistogram();
let all = null;

/** What the thread has computed so far, in nanoseconds. */
function computed() {
  return Number(text.toString('latin1', 0, readSync(schedule, text, 0, text.length, 0)).split(' ')[0]);
}

let last = computed();
setInterval(() => {
  const now = computed();
  held.record(Math.max(1, now - last));
  last = now;
}, TURN_MS).unref();

process.on('SIGUSR2', () => {
  const ms = (nanoseconds) => nanoseconds / 1e6;
  if (all === null) all = createHistogram();
  else all.add(held);
  const line = {
    level: 30,
    msg: 'held',
    turns: held.count,
    longest: ms(held.max),
    p999: ms(all.percentile(99.9)),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  held = createHistogram();
});
