import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { counted, printable } from '../terminal/text.ts';
import { STDOUT, type PullCommand } from './arguments.ts';
import { provedRows, type ProvingOptions } from './attempts.ts';
import { Backoff, type Clock } from './backoff.ts';
import { Interrupted, Refused } from './failure.ts';
import { framed } from './framing.ts';
import { httpSource, type Asking } from './http.ts';
import { BEGINNING, sumOf, type Place } from './place.ts';
import { createProgress, summary, type Progress } from './progress.ts';
import { DEFAULTS, pull } from './pull.ts';
import { estimateOf, partsOf } from './side-requests.ts';
import { Workspace } from './workspace.ts';

export { parsePullArguments, type PullCommand } from './arguments.ts';
export { REAL_CLOCK } from './backoff.ts';
export { PULL_HELP } from './usage.ts';

export interface PullIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Whether stderr is a terminal. */
  readonly isTTY: boolean;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** A connection without data for this long is closed. Milliseconds. */
const IDLE_MS = 60_000;
/** How long the pull waits for the estimated number of rows. Milliseconds. */
const ESTIMATE_MS = 10_000;

/**
 * Runs a pull and reports the result on stderr. Resolves with the exit code: 0 when the set is whole and
 * proved, otherwise 1.
 */
export async function runPull(command: PullCommand, io: PullIo): Promise<0 | 1> {
  try {
    const key = command.keyFile === null ? null : await keyIn(command.keyFile);
    const run = new Run(command, io, key);
    await (command.output === STDOUT ? run.toStdout() : run.toFile(command.output));
    return 0;
  } catch (error) {
    const reason = io.signal.aborted ? 'interrupted' : reasonOf(error);
    const next = command.output === STDOUT ? '' : '; run it again to go on';
    io.stderr.write(`sluice: ${printable(reason)}${error instanceof Refused ? '' : next}\n`);
    return 1;
  }
}

async function keyIn(path: string): Promise<string> {
  const [key = ''] = (await readFile(path, 'utf8')).split('\n');
  return key.trim();
}

/** The message of an expected error. An internal error is thrown again. */
function reasonOf(error: unknown): string {
  const isForeseen = error instanceof Interrupted || error instanceof Refused;
  if (error instanceof Error && (isForeseen || 'code' in error)) return error.message;
  throw error;
}

/** One run: the state that its parts share. */
class Run {
  readonly #command: PullCommand;
  readonly #io: PullIo;
  /** Aborted when one part fails for good, since the other parts are then useless. */
  readonly #stop = new AbortController();
  readonly #asking: Asking;
  readonly #began: number;
  #cuts = 0;

  constructor(command: PullCommand, io: PullIo, key: string | null) {
    this.#command = command;
    this.#io = io;
    this.#began = io.clock.now();
    const signal = AbortSignal.any([io.signal, this.#stop.signal]);
    this.#asking = { compression: command.compression, key, idleMs: IDLE_MS, signal };
  }

  async toStdout(): Promise<void> {
    const { url, format } = this.#command;
    const progress = await this.#progress(BEGINNING);
    let last = BEGINNING;
    const rows = this.#rows(url, progress, (place) => (last = place));
    try {
      const { signal } = this.#asking;
      await pipeline(framed(rows, format, this.#fields()), this.#io.stdout, { end: false, signal });
    } finally {
      progress.stop();
    }
    this.#tell(last, ['standard output']);
  }

  async toFile(output: string): Promise<void> {
    const { url, parallel, restart, format, split } = this.#command;
    const begin = () => (parallel === 1 ? Promise.resolve([url.href]) : this.#parts());
    const workspace = await Workspace.open(output, url.href, { restart, begin });
    try {
      await this.#pullParts(workspace);
    } finally {
      await workspace.close();
    }
    const names = await workspace.finish({ format, fields: this.#fields() }, split, this.#asking.signal);
    this.#tell(sumOf(workspace.places), names);
  }

  async #pullParts(workspace: Workspace): Promise<void> {
    const before = sumOf(workspace.places);
    const progress = await this.#progress(before);
    if (before.rows > 0) progress.line(`going on behind ${counted(before.rows)} rows`);
    const parts = workspace.task.parts.map(async (url, n) => {
      const from = workspace.places[n] ?? BEGINNING;
      const firstRow = await workspace.firstRowOf(n);
      const options = { ...this.#options(progress), from, firstRow };
      for await (const step of provedRows(new URL(url), options)) {
        if (step.kind === 'rows') await workspace.append(n, step.bytes);
        else if (step.kind === 'void') await workspace.takeBack(n);
        else {
          await workspace.prove(n, step.place);
          progress.update(sumOf(workspace.places));
        }
      }
    });
    try {
      await Promise.all(parts);
    } catch (error) {
      this.#stop.abort(error);
      await Promise.allSettled(parts);
      throw error;
    } finally {
      progress.stop();
    }
  }

  /** Proved rows, in order. `passed` receives the place behind each proved piece. */
  async *#rows(
    url: URL,
    progress: Progress,
    passed: (place: Place) => void,
  ): AsyncGenerator<Buffer, void, undefined> {
    for await (const { chunks, place } of pull(url, this.#options(progress))) {
      yield* chunks;
      passed(place);
      progress.update(place);
    }
  }

  #options(progress: Progress): ProvingOptions {
    const { retryForMs } = this.#command;
    const onInterrupted = this.#interrupted((text) => progress.line(text));
    const { clock } = this.#io;
    return { ...DEFAULTS, ...this.#asking, retryForMs, onInterrupted, clock };
  }

  async #parts(): Promise<readonly string[]> {
    const { url, parallel, retryForMs } = this.#command;
    const { signal } = this.#asking;
    const onInterrupted = this.#interrupted((text) => this.#io.stderr.write(`${text}\n`));
    const backoff = new Backoff({
      ...{ clock: this.#io.clock, retryForMs, idleMs: IDLE_MS },
      ...{ signal, onInterrupted },
    });
    for (;;) {
      try {
        const attempt = backoff.attempt();
        const asking = { ...this.#asking, signal: attempt.signal };
        return await attempt.wait(() => partsOf(httpSource, url, parallel, asking));
      } catch (error) {
        await backoff.after(error);
      }
    }
  }

  #interrupted(tell: (text: string) => void): (failure: Interrupted, waitMs: number) => void {
    return ({ message }, waitMs) => {
      this.#cuts++;
      tell(`${printable(message)}; again in ${(waitMs / 1000).toFixed(1)} s`);
    };
  }

  async #progress(before: Place): Promise<Progress> {
    const { stderr, isTTY, clock } = this.#io;
    const total = await this.#estimate();
    return createProgress({ stderr, isTTY, total, before, now: () => clock.now() });
  }

  /** The estimate is only shown. A server that does not provide one is pulled from all the same. */
  async #estimate(): Promise<number | null> {
    const { signal } = this.#asking;
    const limits = { retryForMs: 0, idleMs: ESTIMATE_MS, onInterrupted: () => undefined };
    const attempt = new Backoff({ clock: this.#io.clock, signal, ...limits }).attempt();
    const asking = { ...this.#asking, signal: attempt.signal };
    try {
      return await attempt.wait(() => estimateOf(httpSource, this.#command.url, asking));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Refused || error instanceof Interrupted) return null;
      throw error;
    }
  }

  #fields(): readonly string[] | null {
    return this.#command.url.searchParams.get('fields')?.split(',') ?? null;
  }

  #tell(place: Place, names: readonly string[]): void {
    const ms = this.#io.clock.now() - this.#began;
    this.#io.stderr.write(`${summary({ place, cuts: this.#cuts, ms, names })}\n`);
  }
}
