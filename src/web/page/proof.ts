/** A live stream that the user pauses and cuts: a pause stops reading, and a cut stream continues after its last proof. */
import { BEGINNING } from '../../pull/proof.ts';
import { provedRows, type GetContent } from '../../pull/proved-rows.ts';
import { Interrupted } from '../../pull/retry.ts';
import { PROVING } from './api.ts';
import { crc32, crcText } from './crc32.ts';
import { element, make, run, say } from './dom.ts';
import type { Resource } from './resource.ts';
import { counted, listed, sizeOf } from './text.ts';
import { urlOf, viewQuery, wordsOf, type View } from './view.ts';

const EVERY_MS = 250;
/** A stream is given up after this time without a proved row. Milliseconds. */
const RETRY_MS = 30_000;
/** Seconds that a stream at an easy pace takes, however many rows it has; and its least rows per second. */
const [EASY_SECONDS, LEAST_RATE] = [15, 500];

type State = 'idle' | 'running' | 'paused' | 'cut' | 'whole' | 'failed';

/** What a stream has brought. */
interface Counts {
  /** Rows that are proved, or wait for their proof, and all bytes that came. */
  rows: number;
  bytes: number;
  /** The CRC-32 of `rows` as this page computes it, and the same at the last proof. */
  own: number;
  ownProved: number;
  /** The last proof, with the CRC-32 of the server's CRCs of all pieces, joined. */
  place: typeof BEGINNING;
  /** The number of proved rows that each answer brought. */
  readonly pieces: number[];
}

function noCounts(): Counts {
  return { rows: 0, bytes: 0, own: 0, ownProved: 0, place: BEGINNING, pieces: [] };
}

let shown: View | null = null;
let stop = (): void => undefined;

/** Names the rows of the stream. Stops a stream of other rows. */
export function showProof(view: View): void {
  if (shown && urlOfStream(shown) === urlOfStream(view)) return;
  stop();
  shown = view;
  const words = wordsOf(view);
  const which = words === '' ? '' : ` where ${words}`;
  say('proof-what', `All rows of ${view.resource.name}${which}, as one stream.`);
}

function urlOfStream(view: View): string {
  return urlOf(view.resource.links.stream ?? '', viewQuery(view));
}

export function setUpProof(): void {
  const button = (id: string) => element(id, HTMLButtonElement);
  const [start, pause, cut] = [button('start'), button('pause'), button('cut')];
  let state: State = 'idle';
  let counts = noCounts();
  /** Ends the stream, or its connection alone. */
  let [leave, lose] = [new AbortController(), new AbortController()];
  let goOn = (): void => undefined;

  const become = (next: State, words: string) => {
    state = next;
    const canCut = next === 'running' || next === 'paused';
    start.disabled = canCut || next === 'cut';
    pause.disabled = cut.disabled = !canCut;
    pause.setAttribute('aria-pressed', String(next === 'paused'));
    pause.textContent = next === 'paused' ? 'Continue' : 'Pause';
    element('stream-state').dataset.state = next;
    say('stream-state', words);
    showCounts(counts);
  };
  const isPaused = () => state === 'paused' && !lose.signal.aborted && !leave.signal.aborted;

  /** Begins another answer, which goes on after the last proof. */
  const connect: GetContent = (url, accept, options) => {
    lose = new AbortController();
    counts.pieces.push(0);
    say('stream-request', `GET ${url.pathname}${url.search}`);
    become('running', counts.pieces.length > 1 ? 'running again, after the last proved row' : 'running');
    const signal = AbortSignal.any([options.signal, lose.signal]);
    return PROVING.getContent(url, accept, { ...options, signal });
  };

  const read = async (view: View, mine: Counts) => {
    leave = new AbortController();
    const { signal } = leave;
    const pace = pacing(rateOf(view.resource));
    const steps = provedRows(new URL(urlOfStream(view), location.href), {
      ...{ ...PROVING, follow: false, getContent: connect, signal, retryForMs: RETRY_MS },
      onInterrupted: ({ message }) => {
        const why = lose.signal.aborted ? 'cut' : `cut: ${message}`;
        become('cut', `${why}. It goes on by itself after row ${counted(mine.place.rows)}`);
      },
    });
    for await (const step of steps) {
      // A paused stream is not read. Buffers fill up, and the server then waits and reads no more from its store.
      while (isPaused()) await new Promise<void>((resolve) => (goOn = resolve));
      signal.throwIfAborted();
      if (step.kind === 'rows') {
        mine.rows += step.rows;
        mine.bytes += step.bytes.length;
        mine.own = crc32(step.bytes, mine.own);
        await pace(step.rows);
      } else if (step.kind === 'proof') {
        mine.place = step.place;
        mine.ownProved = mine.own;
        mine.pieces.push((mine.pieces.pop() ?? 0) + step.rows);
      } else {
        mine.rows = mine.place.rows;
        mine.own = mine.ownProved;
      }
    }
    become('whole', matches(mine) ? 'complete and verified' : 'complete, but the checksums differ');
  };

  start.onclick = () => {
    const view = shown;
    if (!view) return;
    counts = noCounts();
    const mine = counts;
    run(
      () => read(view, mine),
      (text) => become('failed', `given up: ${text}`),
    );
  };
  pause.onclick = () => {
    if (state === 'running') become('paused', 'paused: this page reads nothing');
    else become('running', 'running');
    goOn();
  };
  cut.onclick = () => {
    lose.abort(new Interrupted('cut'));
    goOn();
  };
  stop = () => {
    counts = noCounts();
    leave.abort();
    goOn();
    become('idle', 'not started');
    say('stream-request', '');
  };

  let last = { at: performance.now(), rows: 0 };
  setInterval(() => {
    const now = { at: performance.now(), rows: counts.rows };
    const rate = (Math.max(0, now.rows - last.rows) * 1000) / (now.at - last.at);
    last = now;
    if (state === 'running' || state === 'paused') showCounts(counts);
    say('stream-rate', counted(rate));
  }, EVERY_MS);
}

function rateOf({ rows = 0 }: Resource): number {
  if (element('speed', HTMLSelectElement).value === 'full') return Infinity;
  return Math.max(LEAST_RATE, rows / EASY_SECONDS);
}

/** Whether every row is proved, and the checksum of the joined pieces is that of the rows. */
function matches({ place, own, rows }: Counts): boolean {
  return place.ended && own === place.crc32 && rows === place.rows;
}

function showCounts(counts: Counts): void {
  const { rows, bytes, own, place, pieces } = counts;
  say('stream-rows', counted(rows));
  say('stream-proved', counted(place.rows));
  say('stream-bytes', sizeOf(bytes));
  say('stream-pieces', String(pieces.length));
  const result = matches(counts) ? 'good' : place.ended ? 'bad' : 'open';
  const joined = pieces.length === 1 ? 'one piece' : `${pieces.length} pieces joined`;
  const words = {
    good: `They match: ${joined}, every row once.`,
    bad: 'They differ.',
    open: 'Compared when the last row has come.',
  };
  element('checksum').dataset.state = result;
  say('checksum-own', place.rows > 0 ? crcText(own) : '\u2013');
  say('checksum-joined', place.rows > 0 ? crcText(place.crc32) : '\u2013');
  say('checksum-words', words[result]);
  showPieces(pieces, place.ended ? 0 : (shown?.resource.rows ?? 0) - place.rows);
}

/** A bar of the rows that each connection brought, and of the `rest` that is missing. */
function showPieces(pieces: readonly number[], rest: number): void {
  const parts = [...pieces, rest].map((rows, n) => {
    const part = make(n < pieces.length ? 'span.piece' : 'span');
    part.style.flexGrow = String(Math.max(0, rows));
    return part;
  });
  const words = pieces.map((rows, n) => `connection ${n + 1}: ${counted(rows)} rows`);
  element('pieces').replaceChildren(...parts);
  element('pieces').setAttribute('aria-label', listed(words) || 'No connection yet');
}

/** Resolves when the page may read more rows; what waits in buffers makes the server wait. Infinity: no pace. */
function pacing(rowsPerSecond: number): (rows: number) => Promise<void> {
  let due = performance.now();
  return async (rows) => {
    due = Math.max(performance.now() - 50, due) + (rows * 1000) / rowsPerSecond;
    const wait = due - performance.now();
    if (wait > 5) await new Promise((resolve) => setTimeout(resolve, wait));
  };
}
