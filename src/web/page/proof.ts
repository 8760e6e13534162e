/** A live stream that the user pauses and cuts: a pause stops reading, and a cut stream continues after its last proof. */
import { BEGINNING } from '../../pull/proof.ts';
import { provedRows, type GetContent } from '../../pull/proved-rows.ts';
import { Interrupted } from '../../pull/retry.ts';
import { PROVING, urlOf } from './api.ts';
import type { Resource } from './resource.ts';
import { crc32, crcText } from './crc32.ts';
import { element, make, on, say } from './dom.ts';
import { counted, listed, sizeOf } from './text.ts';
import { viewQuery, wordsOf, type View } from './view.ts';

const EVERY_MS = 250;
/** A stream is given up after this time without a proved row. Milliseconds. */
const RETRY_MS = 30_000;
/** Seconds that a stream at an easy pace takes, however many rows it has; and its least rows per second. */
const [EASY_SECONDS, LEAST_RATE] = [15, 500];

type State = 'idle' | 'running' | 'paused' | 'cut' | 'whole' | 'failed';

/** What a stream has brought. */
interface Counts {
  /** Rows that are proved, or wait for their proof. */
  rows: number;
  /** All rows and bytes that came, also those that came twice. */
  seen: number;
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
  return { rows: 0, seen: 0, bytes: 0, own: 0, ownProved: 0, place: BEGINNING, pieces: [] };
}

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
  let counts = noCounts();
  /** Ends the stream, or its connection alone. */
  let [leave, lose] = [new AbortController(), new AbortController()];
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
    showCounts(counts);
  };
  const isPaused = () => state === 'paused' && !lose.signal.aborted && !leave.signal.aborted;

  /** Begins another answer, which goes on after the last proof. */
  const connect: GetContent = (url, accept, options) => {
    lose = new AbortController();
    counts.pieces.push(0);
    say('stream-request', `GET ${url.pathname}${url.search}`);
    become('running', counts.pieces.length > 1 ? 'running again, after the last proved row' : 'running');
    return PROVING.getContent(url, accept, {
      ...options,
      signal: AbortSignal.any([options.signal, lose.signal]),
    });
  };

  const read = async ({ resource, view }: { resource: Resource; view: View }, mine: Counts) => {
    leave = new AbortController();
    const { signal } = leave;
    const pace = pacing(rateOf(resource));
    const steps = provedRows(new URL(streamUrl(resource, view), location.href), {
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
        mine.seen += step.rows;
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

  on(
    start,
    'click',
    async () => {
      counts = noCounts();
      try {
        if (shown) await read(shown, counts);
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error;
        become('failed', 'given up: the connection was cut again and again');
      }
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
    lose.abort(new Interrupted('cut'));
    goOn();
  });
  stop = () => {
    counts = noCounts();
    leave.abort();
    goOn();
    become('idle', 'not started');
    say('stream-request', '');
  };

  let last = { at: performance.now(), seen: 0 };
  setInterval(() => {
    const now = { at: performance.now(), seen: counts.seen };
    const rows = (Math.max(0, now.seen - last.seen) * 1000) / (now.at - last.at);
    last = now;
    if (state === 'running' || state === 'paused') showCounts(counts);
    say('stream-rate', counted(rows));
  }, EVERY_MS);
  become('idle', 'not started');
}

/** The rows per second that the page reads. */
function rateOf({ rows = 0 }: Resource): number {
  if (element('speed', HTMLSelectElement).value === 'full') return Infinity;
  return Math.max(LEAST_RATE, rows / EASY_SECONDS);
}

function showCounts(counts: Counts): void {
  say('stream-rows', counted(counts.rows));
  say('stream-proved', counted(counts.place.rows));
  say('stream-bytes', sizeOf(counts.bytes));
  say('stream-pieces', String(counts.pieces.length));
  showChecksum(counts);
  showPieces(counts);
}

/** Whether every row is proved, and the checksum of the joined pieces is that of the rows. */
function matches({ place, own, rows }: Counts): boolean {
  return place.ended && own === place.crc32 && rows === place.rows;
}

function showChecksum(counts: Counts): void {
  const { place, own, pieces } = counts;
  element('checksum').dataset.state = matches(counts) ? 'good' : place.ended ? 'bad' : 'open';
  say('checksum-own', place.rows > 0 ? crcText(own) : '\u2013');
  say('checksum-joined', place.rows > 0 ? crcText(place.crc32) : '\u2013');
  const joined = pieces.length === 1 ? 'one piece' : `${pieces.length} pieces joined`;
  if (matches(counts)) say('checksum-words', `They match: ${joined}, every row once.`);
  else if (place.ended) say('checksum-words', 'They differ.');
  else say('checksum-words', 'Compared when the last row has come.');
}

/** A bar of the rows that each connection brought. */
function showPieces({ pieces, place: { ended } }: Counts): void {
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

/**
 * Returns what resolves when the page may read a number of rows more. What is not read waits in buffers, and then the
 * server waits, too. `rowsPerSecond`: Infinity as fast as the rows come.
 */
function pacing(rowsPerSecond: number): (rows: number) => Promise<void> {
  let due = performance.now();
  return async (rows) => {
    due = Math.max(performance.now() - 50, due) + (rows * 1000) / rowsPerSecond;
    const wait = due - performance.now();
    if (wait > 5) await new Promise((resolve) => setTimeout(resolve, wait));
  };
}
