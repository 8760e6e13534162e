import { pipeline } from 'node:stream/promises';
import { counted, printable } from '../terminal/text.ts';
import type { PullCommand } from './arguments.ts';
import type { Copy } from './copy.ts';
import type { RequestOptions } from './http.ts';
import { createProgress, followSummary, summary, type Progress } from './progress.ts';
import { BEGINNING, type ProvedPlace } from './proof.ts';
import { provedRows, type ProvingOptions } from './proved-rows.ts';
import { DEFAULTS, pull } from './pull.ts';
import { createBackoff, Interrupted, Refused, type BackoffOptions, type Clock } from './retry.ts';
import { getEstimate, getParts } from './side-requests.ts';
import { Workspace } from './workspace.ts';

/** How long the pull waits for the estimated number of rows. Milliseconds. */
const ESTIMATE_MS = 10_000;

export interface PullIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Whether stderr is a terminal. */
  readonly isTTY: boolean;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** One run: the state that its parts share. */
export class Run {
  readonly #command: PullCommand;
  readonly #io: PullIo;
  /** Aborted when one part fails for good, since the other parts are then useless. */
  readonly #stop = new AbortController();
  readonly #request: RequestOptions;
  readonly #began: number;
  #cuts = 0;

  constructor(command: PullCommand, io: PullIo, key: string | null) {
    this.#command = command;
    this.#io = io;
    const signal = AbortSignal.any([io.signal, this.#stop.signal]);
    this.#request = { compression: command.compression, key, idleMs: DEFAULTS.idleMs, signal };
    this.#began = io.clock.now();
  }

  async toStdout(): Promise<void> {
    const { url } = this.#command;
    const progress = await this.#startProgress(BEGINNING);
    let last = BEGINNING;
    const rows = this.#rows(url, progress, (place) => (last = place));
    try {
      const { signal } = this.#request;
      await pipeline(rows, this.#io.stdout, { end: false, signal });
    } finally {
      progress.stop();
    }
    this.#report(last, 'standard output');
  }

  async toFile(output: string): Promise<void> {
    const { url, parallel, restart } = this.#command;
    const begin = () => (parallel === 1 ? Promise.resolve([url.href]) : this.#parts());
    const workspace = await Workspace.open(output, url.href, { restart, begin });
    try {
      await this.#pullParts(workspace);
    } finally {
      await workspace.close();
    }
    await workspace.finish(this.#request.signal);
    this.#report(workspace.proved, output);
  }

  /**
   * Brings a copy of the set up to date, by all rows first when it is new and then by their changes, and closes it. With
   * `--follow` it keeps the copy so until the user interrupts.
   */
  async keep(copy: Copy): Promise<void> {
    const { url, follow } = this.#command;
    const { place } = copy;
    const progress = await this.#startProgress(place, place.cursor === null);
    let wasCurrent = false;
    try {
      for await (const step of provedRows(url, { ...this.#options(progress), from: place, follow: true })) {
        if (step.kind === 'rows') copy.add(step.bytes);
        else if (step.kind === 'void') await copy.takeBack();
        else if (step.kind === 'restart') {
          progress.line(`${printable(step.reason)}; starting again with an empty copy`);
          await copy.restart();
        } else {
          await copy.prove(step.place);
          progress.update(step.place);
          if (step.upToDate && !wasCurrent) {
            await copy.confirm?.(() => this.#ids(progress));
            progress.line('the copy is up to date');
          }
          wasCurrent = step.upToDate;
          if (step.upToDate && !follow) break;
        }
      }
    } catch (error) {
      const isEnd = follow && wasCurrent && this.#io.signal.aborted; // there is no other end
      if (!isEnd) throw error;
    } finally {
      progress.stop();
      await copy.close();
    }
    this.#io.stderr.write(`${followSummary({ before: place, place: copy.place, name: copy.name })}\n`);
  }

  /** The ids of all rows, each once: a row comes once in a stream that does not follow. */
  async *#ids(progress: Progress): AsyncGenerator<Buffer, void, undefined> {
    const url = new URL(this.#command.url);
    url.searchParams.set('fields', '_id');
    for await (const { chunks } of pull(url, this.#options(progress))) yield Buffer.concat(chunks);
  }

  async #pullParts(workspace: Workspace): Promise<void> {
    const before = workspace.proved;
    const progress = await this.#startProgress(before);
    if (before.rows > 0) progress.line(`continuing after ${counted(before.rows)} rows`);
    const parts = workspace.parts.map(async ({ url, file, prove }) => {
      const from = { from: file.place, firstRow: await file.firstRow() };
      for await (const step of provedRows(new URL(url), { ...this.#options(progress), ...from })) {
        if (step.kind === 'rows') await file.append(step.bytes);
        else if (step.kind !== 'proof') await file.takeBack();
        else {
          await prove(step.place);
          progress.update(workspace.proved);
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

  /** Proved rows, in order. `passed` receives the place after each proved piece. */
  async *#rows(
    url: URL,
    progress: Progress,
    passed: (place: ProvedPlace) => void,
  ): AsyncGenerator<Buffer, void, undefined> {
    for await (const { chunks, place } of pull(url, this.#options(progress))) {
      yield* chunks;
      passed(place);
      progress.update(place);
    }
  }

  #options(progress: Progress): ProvingOptions {
    return { ...DEFAULTS, ...this.#request, ...this.#patience((text) => progress.line(text)) };
  }

  /** How long a request is repeated, and how its failures are shown. */
  #patience(tell: (text: string) => void): BackoffOptions {
    const { idleMs, signal } = this.#request;
    const onInterrupted = ({ message }: Interrupted, waitMs: number) => {
      this.#cuts++;
      tell(`${printable(message)}; retrying in ${(waitMs / 1000).toFixed(1)} s`);
    };
    const { clock } = this.#io;
    return { clock, retryForMs: this.#command.retryForMs, idleMs, signal, onInterrupted };
  }

  #parts(): Promise<readonly string[]> {
    const { url, parallel } = this.#command;
    const backoff = createBackoff(this.#patience((text) => this.#io.stderr.write(`${text}\n`)));
    return backoff.run((signal) => getParts(url, parallel, { ...this.#request, signal }));
  }

  async #startProgress(before: ProvedPlace, isWhole = true): Promise<Progress> {
    const { stderr, isTTY, clock } = this.#io;
    const total = isWhole ? await this.#estimate() : null;
    return createProgress({ stderr, isTTY, total, before, now: () => clock.now() });
  }

  /** The estimate is only shown. A server that does not provide one is pulled from all the same. */
  async #estimate(): Promise<number | null> {
    const { signal } = this.#request;
    const once = { retryForMs: 0, idleMs: ESTIMATE_MS, onInterrupted: () => undefined };
    const backoff = createBackoff({ clock: this.#io.clock, signal, ...once });
    try {
      return await backoff.run((limited) =>
        getEstimate(this.#command.url, { ...this.#request, signal: limited }),
      );
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Refused || error instanceof Interrupted) return null;
      throw error;
    }
  }

  #report(place: ProvedPlace, name: string): void {
    const ms = this.#io.clock.now() - this.#began;
    this.#io.stderr.write(`${summary({ place, cuts: this.#cuts, ms, name })}\n`);
  }
}
