import { AppError } from '../../errors.ts';
import type { Query } from '../../input/query.ts';
import type { RowEncoder, Transcoder } from '../../rows/rows.ts';
import { MAX_CURSOR_BYTES } from '../token/cursor.ts';
import { PARK_AFTER_MS } from '../../pipeline/pump.ts';
import { firstAbort } from '../../store/deadline.ts';
import { cursorOf, keysIn, type Followed } from './answer.ts';
import { framedLines } from './events.ts';
import type { BegunSet } from './feed.ts';
import { follow, type Start, type Step, type Want } from './follow.ts';
import { removedLine } from './lines.ts';

/** What separates the cursors of the sets in the cursor of all. No cursor has this character. */
export const BETWEEN_CURSORS = '.';

/** A set, and what is asked of it: its filters and `fields`. */
interface OneSet {
  readonly name: string;
  readonly query: Query;
}

/** One of several sets that an answer follows. */
interface NamedSet extends BegunSet, OneSet {
  /** The most keys. */
  readonly limit: number;
}

/**
 * Follows sets: their steps as they come, so that none waits for another. A set is read on only when its last step was
 * taken, so a reader that stalls stalls all of them, and each keeps one batch at most. `stops`: see AnswerOptions.
 */
export function severalSets(
  sets: readonly NamedSet[],
  stops: readonly AbortSignal[],
  transcoder: Pick<Transcoder, 'encoder'>,
) {
  const runs = sets.map((set) => setRun(set, transcoder));
  const [first] = runs;
  if (!first) throw new TypeError('no sets');
  const closed = new AbortController();
  let current = first;
  const followed: Followed = {
    async *steps(from, want) {
      current.at = from;
      for (let isParked = true; isParked;) {
        isParked = false;
        const left = new AbortController();
        const reads = firstAbort([want.reads], left.signal);
        const waits = firstAbort([want.waits], left.signal);
        const all = runs.map((run) => run.steps({ ...want, reads, waits }));
        const steps = merged(all, () => left.abort(new Error('the reader has left')));
        const park = () => {
          isParked = true;
          void steps.return();
        };
        for await (const [n, step] of steps) {
          current = runs[n] ?? current;
          current.at = step;
          const isUpToDate = runs.every(({ at }) => at.isUpToDate);
          const isSettled = runs.every(({ at }) => at.isSettled ?? at.isUpToDate);
          // A reader that stalls at rows is parked by the pump, which does not know of rows that others have read.
          const timer = step.rows ? undefined : setTimeout(park, PARK_AFTER_MS);
          try {
            yield { ...step, isUpToDate, isSettled };
          } finally {
            clearTimeout(timer);
          }
        }
      }
    },
    cursorAt(position) {
      const cursors = runs.map(({ set, at }, n) => cursorOf(set, runs[n] === current ? position : at));
      const cursor = cursors.join(BETWEEN_CURSORS);
      return cursors.includes(undefined) || cursor.length > MAX_CURSOR_BYTES ? undefined : cursor;
    },
    removedLine: (id) => current.head + removedLine(id).slice(1),
  };
  const lines: RowEncoder = {
    encode: (...call) => current.lines.encode(...call),
    cut: () => current.lines.cut(),
    close: () => {
      for (const { lines } of runs) lines.close();
      closed.abort(new Error('the answer has ended'));
    },
  };
  return {
    followed,
    /** Where the first of them begins. */
    start: first.at,
    /** Closing it ends the listening to `stops`. */
    lines,
    /** Aborted with the first of `stops`. */
    stopping: firstAbort(stops, closed.signal),
  };
}

function setRun(set: NamedSet, transcoder: Pick<Transcoder, 'encoder'>) {
  const { plan, rows, changes } = set;
  const head = `{"resource":${JSON.stringify(set.name)},`;
  const ofRow = Buffer.from(`${head}"row":`);
  const framing = { head: () => ofRow, end: Buffer.from('}\n') };
  /** The keys that it may still read. Below 0 after a stall, when some were read again. */
  let left = set.limit - keysIn(set.start);
  /** Where it is. A step that was read and not taken yet does not count. */
  const at: Start & Partial<Pick<Step, 'isUpToDate' | 'isSettled'>> = set.start;
  const run = {
    ...{ set, head, at },
    /** Its rows as lines that name it. */
    lines: framedLines(transcoder.encoder('lines', set.shown), framing),
    /** The steps from where it is, up to its share of keys. */
    async *steps(want: Omit<Want, 'plan'>): AsyncGenerator<Step, void, undefined> {
      const own: Want = {
        ...{ ...want, plan, most: () => Math.max(1, Math.min(want.most(), left)) },
        onKeys: (keys) => {
          left -= keys;
          if (keys > 0) run.at = { ...run.at, isUpToDate: false, isSettled: false };
          want.onKeys(keys);
        },
      };
      try {
        for await (const step of follow(changes, rows, run.at, own)) {
          const isFull = !step.rows && !step.removed && left <= 0;
          yield isFull ? { ...step, isSettled: true } : step;
          if (isFull) return;
        }
      } catch (error) {
        throw want.reads.aborted ? error : ofOneSet(error, set); // a reader that leaves is no error of the set
      }
    },
  };
  return run;
}

/** An error that names its set, with the URL of the stream to read anew when the cursor of the set has become useless. */
export function ofOneSet(error: unknown, { name, query }: OneSet): unknown {
  if (!(error instanceof AppError)) return error;
  const asked = query.size > 0 ? `?${new URLSearchParams([...query]).toString()}` : '';
  const { code, message, parameter, headers, cause } = error;
  return new AppError(code, `${name}: ${message}`, {
    headers: error.status === 410 ? { ...headers, location: `/${name}/stream${asked}` } : headers,
    cause,
    ...(parameter !== undefined && { parameter: query.has(parameter) ? `${name}.${parameter}` : parameter }),
  });
}

/** The steps of several runs as they come, each with the number of its run. `leave`: ends what runs wait for. */
async function* merged(
  runs: readonly AsyncGenerator<Step, void, undefined>[],
  leave: () => void,
): AsyncGenerator<readonly [n: number, step: Step], void, undefined> {
  const come: { readonly n: number; readonly next: Promise<IteratorResult<Step, void>> }[] = [];
  let wake = (): void => undefined;
  const ask = (n: number, run: (typeof runs)[number]): void => {
    const next = run.next();
    const arrived = () => {
      come.push({ n, next });
      wake();
    };
    next.then(arrived, arrived);
  };
  try {
    for (const [n, run] of runs.entries()) ask(n, run);
    for (let open = runs.length; open > 0;) {
      if (come.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      for (const { n, next } of come.splice(0, 1)) {
        const { value } = await next;
        if (value) yield [n, value];
        else open--;
        const run = runs[n];
        if (run && value) ask(n, run); // what it gave has been taken
      }
    }
  } finally {
    leave();
    await Promise.allSettled(runs.map((run) => run.return()));
    // The reader has left: these are not taken any more.
    for (const { next } of come)
      void next.then(
        ({ value }) => value?.rows?.release(),
        () => undefined,
      );
  }
}
