import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, reasonOf } from '../error-reason.ts';
import { countOf, printable } from '../terminal/text.ts';
import { STDOUT, type PullCommand } from './arguments.ts';
import type { Copy } from './copy.ts';
import { openCopy, pipeTo } from './open-copy.ts';
import { createProgress, followSummary, summary, type Progress } from './progress.ts';
import { BEGINNING, type Proof, type ProvedPlace } from './proof.ts';
import { provedRows, type ProvingOptions } from './proved-rows.ts';
import { DEFAULTS, pull } from './pull.ts';
import { createBackoff, Interrupted, Refused, type Clock } from './retry.ts';
import { getEstimate, getParts } from './side-requests.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

export { parsePullArguments, PULL_HELP, type PullCommand } from './arguments.ts';
export { REAL_CLOCK } from './retry.ts';

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

/**
 * Runs a pull and reports the result on stderr. Resolves with the exit code: 0 when the set is whole and
 * proved, otherwise 1.
 */
export async function runPull(command: PullCommand, io: PullIo): Promise<0 | 1> {
  const { output, keyFile, follow, into } = command;
  try {
    if (output !== STDOUT) checkPlace(output);
    const run = new Run(command, io, keyFile === null ? null : await readKey(keyFile));
    if (follow || into !== null) await run.keep();
    else await (output === STDOUT ? run.toStdout() : run.toFile(output));
    return 0;
  } catch (error) {
    const reason = io.signal.aborted ? 'interrupted' : expectedReason(error);
    const isResumable =
      output !== STDOUT && !(error instanceof Refused) && !LASTING.has(String(codeOf(error)));
    const needsKey = keyFile === null && error instanceof Refused && error.status === 401;
    const hint = needsKey ? ' --key-file FILE names the file of a key' : '';
    const next = isResumable ? '; run the same command again to continue' : hint;
    io.stderr.write(`sluice: ${printable(reason)}${next}\n`);
    return 1;
  }
}

/** Codes of faults of the file system that stay when the same command runs again. */
const LASTING: ReadonlySet<string> = new Set([
  'EACCES',
  'EISDIR',
  'ENAMETOOLONG',
  'ENOENT',
  'EPERM',
  'EROFS',
]);

/** Throws Refused when no file can have this path. */
function checkPlace(path: string): void {
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new Refused(`there is no folder ${folder} for ${path}`);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new Refused(`${path} is a folder; name a file in it`);
}

async function readKey(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new Refused(`the key file cannot be read: ${reasonOf(error)}`, { cause: error });
  });
  const key = text.split('\n', 1).join('').trim();
  if (key === '') throw new Refused(`the first line of the key file ${path} is empty`);
  return key;
}

/** The message of an expected error. An internal error is thrown again. */
function expectedReason(error: unknown): string {
  const isExpected = error instanceof Interrupted || error instanceof Refused;
  if (error instanceof Error && (isExpected || 'code' in error)) return error.message;
  throw error;
}

/** One run: the state that its parts share. */
class Run {
  readonly #command: PullCommand;
  readonly #io: PullIo;
  /** Aborted when one part fails for good, since the other parts are then useless, or when standard output is closed. */
  readonly #stop = new AbortController();
  readonly #options: ProvingOptions;
  readonly #began: number;
  #cuts = 0;

  constructor(command: PullCommand, io: PullIo, key: string | null) {
    const { compression, retryForMs } = command;
    const { clock } = io;
    this.#command = command;
    this.#io = io;
    const signal = AbortSignal.any([io.signal, this.#stop.signal]);
    this.#options = { ...DEFAULTS, compression, key, retryForMs, clock, signal };
    this.#began = clock.now();
    // A write may fail after the pull has gone on to wait for more rows.
    io.stdout.on('error', (error) => this.#stop.abort(error));
  }

  async toStdout(): Promise<void> {
    const copy = pipeTo(this.#io.stdout, this.#io.signal);
    await this.#withProgress(BEGINNING, true, async (progress) => {
      for await (const { place } of this.#fill(copy, this.#command.url, progress)) progress.update(place);
    });
    this.#options.signal.throwIfAborted();
    this.#report(copy.place, copy.name);
  }

  async toFile(output: string): Promise<void> {
    const { url, parallel, restart } = this.#command;
    const begin = () => (parallel === 1 ? Promise.resolve([url.href]) : this.#parts());
    const workspace = await openWorkspace(output, url.href, { restart, begin });
    try {
      await this.#withProgress(workspace.proved(), true, (progress) => this.#fillParts(workspace, progress));
    } finally {
      await workspace.close();
    }
    await workspace.finish(this.#options.signal);
    this.#report(workspace.proved(), output);
  }

  /**
   * Brings a copy of the set up to date, by all rows first when it is new and then by their changes, and closes it. With
   * `--follow` it keeps the copy so until the user interrupts.
   */
  async keep(): Promise<void> {
    const copy = await openCopy(this.#command, this.#io.stdout, this.#io.signal);
    const before = copy.place;
    try {
      await this.#withProgress(before, before.cursor === null, (progress) => this.#update(copy, progress));
    } finally {
      await copy.close();
    }
    this.#io.stderr.write(`${followSummary(copy.place.rows - before.rows, copy.name)}\n`);
  }

  async #update(copy: Copy, progress: Progress): Promise<void> {
    const { url, follow } = this.#command;
    let wasCurrent = false;
    try {
      for await (const { place, upToDate } of this.#fill(copy, url, progress, { follow: true })) {
        progress.update(place);
        if (upToDate && !wasCurrent) {
          await copy.confirm?.(() => this.#ids(progress));
          progress.line('the copy is up to date');
        }
        wasCurrent = upToDate;
        if (upToDate && !follow) break;
      }
    } catch (error) {
      const isEnd = follow && wasCurrent && this.#io.signal.aborted; // there is no other end
      if (!isEnd) throw error;
    }
  }

  async #fillParts(workspace: Workspace, progress: Progress): Promise<void> {
    const before = workspace.proved().rows;
    if (before > 0) progress.line(`continuing after ${countOf(before, 'row')}`);
    const parts = workspace.parts.map(async ({ url, file }) => {
      const firstRow = await file.firstRow();
      for await (const { rows } of this.#fill(file, new URL(url), progress, { firstRow }))
        if (rows > 0) progress.update(workspace.proved());
    });
    try {
      await Promise.all(parts);
    } catch (error) {
      this.#stop.abort(error);
      await Promise.allSettled(parts);
      throw error;
    }
  }

  /** Fills a copy with the rows of a stream, from the copy's place on. Yields each proof when the copy has its rows. */
  async *#fill(
    copy: Copy,
    url: URL,
    progress: Progress,
    more: Partial<ProvingOptions> = {},
  ): AsyncGenerator<Proof, void, undefined> {
    for await (const step of provedRows(url, { ...this.#showing(progress), from: copy.place, ...more })) {
      if (step.kind === 'rows') copy.add(step.bytes);
      else if (step.kind === 'void') await copy.takeBack();
      else if (step.kind === 'restart') {
        if (!copy.restart)
          throw new Refused(
            `${step.reason} ${copy.name} can no longer be brought up to date: --restart begins it anew`,
          );
        progress.line(`${printable(step.reason)}; starting again with an empty copy`);
        await copy.restart();
      } else {
        await copy.prove(step.place);
        yield step;
      }
    }
  }

  /** The ids of all rows, each once: a row comes once in a stream that does not follow. */
  async *#ids(progress: Progress): AsyncGenerator<Buffer, void, undefined> {
    const url = new URL(this.#command.url);
    url.searchParams.set('fields', '_id');
    for await (const { chunks } of pull(url, this.#showing(progress))) yield Buffer.concat(chunks);
  }

  #showing(progress: Pick<Progress, 'line'>): ProvingOptions {
    const onInterrupted = ({ message }: Interrupted, waitMs: number) => {
      this.#cuts++;
      progress.line(`${printable(message)}; retrying in ${(waitMs / 1000).toFixed(1)} s`);
    };
    return { ...this.#options, onInterrupted };
  }

  #parts(): Promise<readonly string[]> {
    const { url, parallel } = this.#command;
    const options = this.#showing({ line: (text) => this.#io.stderr.write(`${text}\n`) });
    return createBackoff(options).run((signal) => getParts(url, parallel, { ...options, signal }));
  }

  async #withProgress(
    before: ProvedPlace,
    isWhole: boolean,
    work: (progress: Progress) => Promise<void>,
  ): Promise<void> {
    const { stderr, isTTY, clock } = this.#io;
    const total = isWhole ? await this.#estimate() : null;
    const progress = createProgress({ stderr, isTTY, total, before, now: () => clock.now() });
    try {
      await work(progress);
    } finally {
      progress.stop();
    }
  }

  /** The estimate is only shown. A server that does not provide one is pulled from all the same. */
  async #estimate(): Promise<number | null> {
    const options = { ...this.#options, retryForMs: 0, idleMs: ESTIMATE_MS };
    try {
      return await createBackoff(options).run((signal) =>
        getEstimate(this.#command.url, { ...this.#options, signal }),
      );
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof Refused || error instanceof Interrupted) return null;
      throw error;
    }
  }

  #report(place: ProvedPlace, name: string): void {
    const ms = this.#io.clock.now() - this.#began;
    this.#io.stderr.write(`${summary(place, this.#cuts, ms, name)}\n`);
  }
}
