import { RowCounter } from './rows.js';
import { counted, element, on, say, sizeOf } from './page.js';
import { plot } from './plot.js';

const EVERY_MS = 500;

/** A live stream. It pauses by not reading, is cut by closing, and resumes after the last proof. */
export function showStream(filter, onServer) {
  const rate = plot('plot-rows');
  const buttons = ['start', 'pause', 'cut', 'resume'].map(element);
  const [start, pause, cut, resume] = buttons;
  /** The state of the stream: idle, running, paused, cut, whole or failed. */
  let state = 'idle';
  let counter = new RowCounter();
  let query = new URLSearchParams();
  let leave = new AbortController();
  let goOn = () => undefined;

  const become = (next, words = next) => {
    state = next;
    const isOpen = next === 'running' || next === 'paused';
    start.disabled = isOpen;
    pause.disabled = cut.disabled = !isOpen;
    pause.setAttribute('aria-pressed', String(next === 'paused'));
    pause.textContent = next === 'paused' ? 'Continue' : 'Pause';
    resume.disabled = isOpen || counter.cursor === null || next === 'whole';
    say('stream-state', words);
  };

  const read = async (cursor) => {
    const asked = new URLSearchParams(query);
    asked.set('checkpoints', 'true');
    if (cursor !== null) asked.set('cursor', cursor);
    const url = `/items/stream?${asked}`;
    say('stream-request', `GET ${url}`);
    leave = new AbortController();
    counter.begin();
    become('running');
    const response = await fetch(url, { signal: leave.signal, cache: 'no-store' });
    if (!response.ok) throw new Error((await response.json()).detail);
    const reader = response.body.getReader();
    for (;;) {
      // A paused stream is not read. Buffers fill up, and the server then waits and stops reading from its store.
      if (state === 'paused') await new Promise((resolve) => (goOn = resolve));
      const { done, value } = await reader.read();
      if (done) break;
      counter.add(value);
    }
    become(counter.ended ? 'whole' : 'failed', counter.ended ? 'complete and verified' : 'cut by the server');
  };

  const run = async (cursor) => {
    try {
      await read(cursor);
    } catch (error) {
      if (leave.signal.aborted) become('cut', 'cut: resumes after the last verified row');
      else become('failed', `cut: ${error.message}`);
    }
    show();
  };

  on(start, 'click', 'stream-state', () => {
    counter = new RowCounter();
    query = filter();
    return run(null);
  });
  on(resume, 'click', 'stream-state', () => {
    counter.forgetUnproved();
    return run(counter.cursor);
  });
  on(pause, 'click', 'stream-state', async () => {
    if (state === 'running') return become('paused', 'paused: this page reads nothing');
    become('running');
    goOn();
  });
  on(cut, 'click', 'stream-state', async () => {
    leave.abort();
    goOn();
  });

  const show = () => {
    say('stream-rows', counted(counter.rows));
    say('stream-proved', counted(counter.proved));
    say('stream-bytes', sizeOf(counter.bytes));
  };
  let before = { at: performance.now(), seen: 0 };
  setInterval(() => {
    const now = { at: performance.now(), seen: counter.seen };
    const rows = (Math.max(0, now.seen - before.seen) * 1000) / (now.at - before.at);
    before = now;
    show();
    say('stream-rate', counted(rows));
    if (!document.hidden) rate.push(rows);
  }, EVERY_MS);
  onServer(({ rowsRead, streams, stalled }) => {
    say('server-rows', counted(rowsRead));
    say('server-streams', counted(streams));
    say('server-stalled', counted(stalled));
  });
}
