/** A live stream that the user pauses and cuts: a pause stops reading, and a cut stream continues after its last proof. */
import { BEGINNING } from '../../pull/proof.ts';
import { provedRows, type GetContent, type ProvedStep } from '../../pull/proved-rows.ts';
import { Interruption } from '../../pull/retry.ts';
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
const EASY_SECONDS = 15;
const LEAST_RATE = 500;

type State = 'idle' | 'running' | 'paused' | 'cut' | 'whole' | 'failed';

/** What a stream has brought. */
class Counts {
  /** Rows that are proved, or wait for their proof, and all bytes that came. */
  rows = 0;
  bytes = 0;
  /** The CRC-32 of `rows` as this page computes it, and the same at the last proof. */
  own = 0;
  #ownProved = 0;
  /** The last proof, with the CRC-32 of the server's CRCs of all pieces, joined. */
  place = BEGINNING;
  /** The number of proved rows that each answer brought. */
  readonly pieces: number[] = [];

  add(step: ProvedStep): void {
    if (step.kind === 'rows') {
      this.rows += step.rows;
      this.bytes += step.bytes.length;
      this.own = crc32(step.bytes, this.own);
    } else if (step.kind === 'proof') {
      this.place = step.place;
      this.#ownProved = this.own;
      this.pieces.push((this.pieces.pop() ?? 0) + step.rows);
    } else {
      this.rows = this.place.rows;
      this.own = this.#ownProved;
    }
  }

  /** Whether every row is proved, and the checksum of the joined pieces is that of the rows. */
  get match(): boolean {
    return this.place.ended && this.own === this.place.crc32 && this.rows === this.place.rows;
  }
}

function urlOfStream(view: View): string {
  return urlOf(view.resource.links.stream ?? '', viewQuery(view));
}

/** The part of the page that shows a stream, with its three buttons. */
export class ProofPart {
  readonly #start = element('start', HTMLButtonElement);
  readonly #pause = element('pause', HTMLButtonElement);
  readonly #cut = element('cut', HTMLButtonElement);
  #view: View | null = null;
  #state: State = 'idle';
  #counts = new Counts();
  /** Ends the stream. */
  #leave = new AbortController();
  /** Ends its connection alone. */
  #lose = new AbortController();
  #goOn = (): void => undefined;

  constructor() {
    this.#start.onclick = () => {
      const view = this.#view;
      if (!view) return;
      run(
        () => this.#read(view),
        (text) => this.#become('failed', `given up: ${text}`),
      );
    };
    this.#pause.onclick = () => {
      if (this.#state === 'running') this.#become('paused', 'paused: this page reads nothing');
      else this.#become('running', 'running');
      this.#goOn();
    };
    this.#cut.onclick = () => {
      this.#lose.abort(new Interruption('cut'));
      this.#goOn();
    };
    this.#showRate();
  }

  /** Names the rows of the stream. Stops a stream of other rows. */
  show(view: View): void {
    if (this.#view && urlOfStream(this.#view) === urlOfStream(view)) return;
    this.#leave.abort();
    this.#goOn();
    this.#counts = new Counts();
    this.#become('idle', 'not started');
    say('stream-request', '');
    this.#view = view;
    const words = wordsOf(view);
    const which = words === '' ? '' : ` where ${words}`;
    say('proof-what', `All rows of ${view.resource.name}${which}, as one stream.`);
  }

  #become(next: State, words: string): void {
    this.#state = next;
    const canCut = next === 'running' || next === 'paused';
    this.#start.disabled = canCut || next === 'cut';
    this.#pause.disabled = this.#cut.disabled = !canCut;
    this.#pause.setAttribute('aria-pressed', String(next === 'paused'));
    this.#pause.textContent = next === 'paused' ? 'Continue' : 'Pause';
    element('stream-state').dataset.state = next;
    say('stream-state', words);
    this.#showCounts();
  }

  async #read(view: View): Promise<void> {
    const counts = (this.#counts = new Counts());
    this.#leave = new AbortController();
    const { signal } = this.#leave;
    const pace = pacing(rateOf(view.resource));
    const steps = provedRows(new URL(urlOfStream(view), location.href), {
      ...PROVING,
      follow: false,
      getContent: (...request) => this.#connect(...request),
      signal,
      retryForMs: RETRY_MS,
      onInterrupted: ({ message }) => {
        const why = this.#lose.signal.aborted ? 'cut' : `cut: ${message}`;
        this.#become('cut', `${why}. It goes on by itself after row ${counted(counts.place.rows)}`);
      },
    });
    for await (const step of steps) {
      // A paused stream is not read. Buffers fill up, and the server then waits and reads no more from its store.
      while (this.#isPaused) await new Promise<void>((resolve) => (this.#goOn = resolve));
      signal.throwIfAborted();
      counts.add(step);
      if (step.kind === 'rows') await pace(step.rows);
    }
    this.#become('whole', counts.match ? 'complete and verified' : 'complete, but the checksums differ');
  }

  get #isPaused(): boolean {
    return this.#state === 'paused' && !this.#lose.signal.aborted && !this.#leave.signal.aborted;
  }

  /** Begins another answer, which goes on after the last proof. */
  #connect(...[url, accept, options]: Parameters<GetContent>): ReturnType<GetContent> {
    this.#lose = new AbortController();
    const { pieces } = this.#counts;
    pieces.push(0);
    say('stream-request', `GET ${url.pathname}${url.search}`);
    this.#become('running', pieces.length > 1 ? 'running again, after the last proved row' : 'running');
    const signal = AbortSignal.any([options.signal, this.#lose.signal]);
    return PROVING.getContent(url, accept, { ...options, signal });
  }

  /** Shows the rows of each second, and the counts of a stream that is under way. */
  #showRate(): void {
    let last = { at: performance.now(), rows: 0 };
    setInterval(() => {
      const now = { at: performance.now(), rows: this.#counts.rows };
      const rate = (Math.max(0, now.rows - last.rows) * 1000) / (now.at - last.at);
      last = now;
      if (this.#state === 'running' || this.#state === 'paused') this.#showCounts();
      say('stream-rate', counted(rate));
    }, EVERY_MS);
  }

  #showCounts(): void {
    const { rows, bytes, own, place, pieces, match } = this.#counts;
    say('stream-rows', counted(rows));
    say('stream-proved', counted(place.rows));
    say('stream-bytes', sizeOf(bytes));
    say('stream-pieces', String(pieces.length));
    const result = match ? 'good' : place.ended ? 'bad' : 'open';
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
    showPieces(pieces, place.ended ? 0 : (this.#view?.resource.rows ?? 0) - place.rows);
  }
}

function rateOf({ rows = 0 }: Resource): number {
  if (element('speed', HTMLSelectElement).value === 'full') return Infinity;
  return Math.max(LEAST_RATE, rows / EASY_SECONDS);
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
