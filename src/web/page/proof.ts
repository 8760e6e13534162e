/** A live stream that the user pauses and cuts: a pause stops reading, and a cut stream continues after its last proof. */
import { mayPass, open, sleep, urlOf } from './api.ts';
import type { Resource } from './resource.ts';
import { crcText } from './crc32.ts';
import { element, make, on, say } from './dom.ts';
import { RowCounter } from './rows.ts';
import { counted, listed, reasonOf, sizeOf } from './text.ts';
import { viewQuery, wordsOf, type View } from './view.ts';

const EVERY_MS = 250;
/** How long a cut stream waits before it goes on, so that one sees it; and after how many failures it gives up. */
const CUT_MS = 1500;
const MOST_FAILURES = 5;
/** Seconds that a stream at an easy pace takes, however many rows it has; and its least rows per second. */
const [EASY_SECONDS, LEAST_RATE] = [15, 500];

type State = 'idle' | 'running' | 'paused' | 'cut' | 'whole' | 'failed';

let shown: { readonly resource: Resource; readonly view: View } | null = null;
let stop = (): void => undefined;

/** Names the rows of the stream. Stops a stream of other rows. */
export function showProof(resource: Resource, view: View): void {
  const isSame = shown !== null && streamUrl(shown.resource, shown.view) === streamUrl(resource, view);
  if (isSame) return;
  stop();
  shown = { resource, view };
  const words = wordsOf(view);
  say('proof-what', `All rows of ${resource.name}${words === '' ? '' : ` where ${words}`}, as one stream.`);
}

function streamUrl(resource: Resource, view: View): string {
  return urlOf(resource.links.stream ?? '', viewQuery(resource, view));
}

/** Sets up the buttons. */
export function setUpProof(): void {
  const [start, pause, cut] = ['start', 'pause', 'cut'].map((id) => element(id, HTMLButtonElement));
  if (!start || !pause || !cut) throw new TypeError('the page has no buttons for streams');
  let state: State = 'idle';
  let counter = new RowCounter();
  let leave = new AbortController();
  let goOn = (): void => undefined;

  const become = (next: State, words: string) => {
    state = next;
    const isOpen = next === 'running' || next === 'paused' || next === 'cut';
    start.disabled = isOpen;
    pause.disabled = cut.disabled = next !== 'running' && next !== 'paused';
    pause.setAttribute('aria-pressed', String(next === 'paused'));
    pause.textContent = next === 'paused' ? 'Continue' : 'Pause';
    element('stream-state').dataset.state = next;
    say('stream-state', words);
    showCounts();
  };

  /** Reads one answer to its end. Throws when it is cut. */
  const readOnce = async (resource: Resource, view: View, pace: Pace) => {
    const query = viewQuery(resource, view);
    query.set('checkpoints', 'true');
    if (counter.cursor !== null) query.set('cursor', counter.cursor);
    const url = urlOf(resource.links.stream ?? '', query);
    say('stream-request', `GET ${url}`);
    leave = new AbortController();
    counter.begin();
    become('running', counter.pieces.length > 1 ? 'running again, after the last proved row' : 'running');
    const response = await open(url, { signal: leave.signal, cache: 'no-store' });
    const reader = (response.body ?? new Blob().stream()).getReader();
    for (;;) {
      // A paused stream is not read. Buffers fill up, and the server then waits and reads no more from its store.
      while (isPaused()) await new Promise<void>((resolve) => (goOn = resolve));
      leave.signal.throwIfAborted();
      const { done, value } = await reader.read();
      if (done) break;
      const before = counter.seen;
      counter.add(value);
      await pace.after(counter.seen - before);
    }
    if (!counter.ended) throw new Error('the connection ended before the last row');
  };
  const isPaused = () => state === 'paused' && !leave.signal.aborted;

  const runAll = async ({ resource, view }: { resource: Resource; view: View }) => {
    const pace = new Pace(rateOf(resource));
    const mine = counter;
    for (let failures = 0; failures < MOST_FAILURES;) {
      const proved = counter.proved;
      try {
        await readOnce(resource, view, pace);
        become('whole', counter.matches ? 'complete and verified' : 'complete, but the checksums differ');
        return;
      } catch (error) {
        if (counter !== mine) return; // another stream was started
        if (!mayPass(error)) throw error;
        const why = leave.signal.aborted ? 'cut' : `cut: ${reasonOf(error)}`;
        become('cut', `${why}. It goes on by itself after row ${counted(counter.proved)}`);
        failures = counter.proved > proved || leave.signal.aborted ? 0 : failures + 1;
        await sleep(CUT_MS);
        if (counter !== mine) return;
      }
    }
    become('failed', 'given up: the connection was cut again and again');
  };

  const showCounts = () => {
    say('stream-rows', counted(counter.rows));
    say('stream-proved', counted(counter.proved));
    say('stream-bytes', sizeOf(counter.bytes));
    say('stream-pieces', String(counter.pieces.length));
    showChecksum(counter);
    showPieces(counter);
  };

  on(
    start,
    'click',
    () => {
      counter = new RowCounter();
      return shown && runAll(shown);
    },
    (text) => become('failed', `not possible: ${text}`),
  );
  on(pause, 'click', () => {
    if (state === 'running') {
      become('paused', 'paused: this page reads nothing');
      return;
    }
    become('running', 'running');
    goOn();
  });
  on(cut, 'click', () => {
    leave.abort();
    goOn();
  });
  stop = () => {
    counter = new RowCounter();
    leave.abort();
    goOn();
    become('idle', 'not started');
    say('stream-request', '');
  };

  let last = { at: performance.now(), seen: 0 };
  setInterval(() => {
    const now = { at: performance.now(), seen: counter.seen };
    const rows = (Math.max(0, now.seen - last.seen) * 1000) / (now.at - last.at);
    last = now;
    if (state === 'running' || state === 'paused') showCounts();
    say('stream-rate', counted(rows));
  }, EVERY_MS);
  become('idle', 'not started');
}

/** The rows per second that the page reads. */
function rateOf({ rows = 0 }: Resource): number {
  if (element('speed', HTMLSelectElement).value === 'full') return Infinity;
  return Math.max(LEAST_RATE, rows / EASY_SECONDS);
}

function showChecksum(counter: RowCounter): void {
  const place = element('checksum');
  place.dataset.state = counter.matches ? 'good' : counter.ended ? 'bad' : 'open';
  say('checksum-own', counter.proved > 0 ? crcText(counter.own) : '\u2013');
  say('checksum-joined', counter.proved > 0 ? crcText(counter.joined) : '\u2013');
  const pieces = counter.pieces.length === 1 ? 'one piece' : `${counter.pieces.length} pieces joined`;
  if (counter.matches) say('checksum-words', `They match: ${pieces}, every row once.`);
  else if (counter.ended) say('checksum-words', 'They differ.');
  else say('checksum-words', 'Compared when the last row has come.');
}

/** A bar of the rows that each connection brought. */
function showPieces({ pieces, ended }: RowCounter): void {
  const all = shown?.resource.rows ?? 0;
  const brought = pieces.reduce((sum, rows) => sum + rows, 0);
  const rest = ended ? 0 : Math.max(0, all - brought);
  const parts = pieces.map((rows) => {
    const part = make('span', { class: 'piece' });
    part.style.flexGrow = String(rows);
    return part;
  });
  const missing = make('span', { class: 'piece-missing' });
  missing.style.flexGrow = String(rest);
  const bar = element('pieces');
  bar.replaceChildren(...parts, missing);
  const words = pieces.map((rows, n) => `connection ${n + 1}: ${counted(rows)} rows`);
  bar.setAttribute('aria-label', words.length === 0 ? 'No connection yet' : listed(words));
}

/** Reads only as fast as wanted. What is not read waits in buffers, and then the server waits, too. */
class Pace {
  readonly #rowsPerSecond: number;
  #due = performance.now();

  /** Infinity: as fast as the rows come. */
  constructor(rowsPerSecond: number) {
    this.#rowsPerSecond = rowsPerSecond;
  }

  /** Resolves when the page may read `rows` more rows. */
  async after(rows: number): Promise<void> {
    if (this.#rowsPerSecond === Infinity) return;
    this.#due = Math.max(performance.now() - 50, this.#due) + (rows * 1000) / this.#rowsPerSecond;
    const wait = this.#due - performance.now();
    if (wait > 5) await sleep(wait);
  }
}
