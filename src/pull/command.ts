import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../base/error-reason.ts';
import { startProgress, type Console, type Progress } from '../terminal/progress.ts';
import { countOf, printable } from '../terminal/text.ts';
import { STDOUT, type PullCommand } from './arguments.ts';
import type { Copy } from './copy.ts';
import { readKey } from './key-file.ts';
import { EditionRun } from './edition/edition-run.ts';
import { MirrorRun } from './edition/mirror-run.ts';
import { filesOf, NewestEdition } from './edition/newest-edition.ts';
import { Report } from './edition/report.ts';
import { ExportRun } from './export-run.ts';
import { decompress, getAnswer } from './http.ts';
import { openCopy, pipeTo } from './open-copy.ts';
import { BEGINNING, type Proof, type ProvedPlace } from './proof.ts';
import { provedRows, type ProvingOptions } from './proved-rows.ts';
import { DEFAULTS, pull } from './pull.ts';
import { Backoff, Interruption, Refusal, type Clock } from './retry.ts';
import { getEstimate, getParts } from './side-requests.ts';
import { describer, followSummary, summary } from './summaries.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

export { parsePullArguments, type PullCommand } from './arguments.ts';
export { PULL_HELP } from './help.ts';
export { REAL_CLOCK } from './retry.ts';

/** How long the pull waits for the estimated number of rows. Milliseconds. */
const ESTIMATE_MS = 10_000;

interface PullIo extends Console {
  readonly stdout: NodeJS.WritableStream;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Runs a pull and reports the result on stderr. Resolves with the exit code: 0 when the set is whole and proved. */
export async function runPull(command: PullCommand, io: PullIo): Promise<0 | 1> {
  const { output, keyFile } = command;
  try {
    if (output !== STDOUT && command.mirror === null) checkPlace(output);
    await runOf(command, io, keyFile === null ? null : await readKey(keyFile)).run();
    return 0;
  } catch (error) {
    const reason = io.signal.aborted ? 'interrupted' : expectedReason(error);
    const isResumable =
      output !== STDOUT && !(error instanceof Refusal) && !LASTING.has(String(codeOf(error)));
    const needsKey = keyFile === null && error instanceof Refusal && error.status === 401;
    const hint = needsKey ? ' --key-file FILE names the file of a key' : '';
    const next = isResumable ? '; run the same command again to continue' : hint;
    io.stderr.write(`sluice: ${printable(reason)}${next}\n`);
    return 1;
  }
}

interface Run {
  run(): Promise<void>;
}

function runOf(command: PullCommand, io: PullIo, key: string | null): Run {
  const { isExport, isEdition, into, retryForMs } = command;
  const { signal, clock } = io;
  if (isExport) return new ExportRun(command, io, { ...DEFAULTS, getAnswer, key, signal, clock, retryForMs });
  if (!isEdition || into !== null) return new PullRun(command, io, key);
  const report = new Report(io, command.output);
  const files = filesOf(command, report, { key, signal, clock, retryForMs, getAnswer, decompress });
  return command.mirror === null
    ? new EditionRun(command, files, report)
    : new MirrorRun(command, files, report);
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

/** Throws Refusal when no file can have this path. */
function checkPlace(path: string): void {
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new Refusal(`there is no folder ${folder} for ${path}`);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new Refusal(`${path} is a folder; name a file in it`);
}

/** The message of an expected error. An internal error is thrown again. */
function expectedReason(error: unknown): string {
  const isExpected = error instanceof Interruption || error instanceof Refusal;
  if (error instanceof Error && (isExpected || 'code' in error)) return error.message;
  throw error;
}

/** One pull: what it asks for, what it says, and when it stops. */
class PullRun {
  readonly #command: PullCommand;
  readonly #io: PullIo;
  /** Aborted when one part fails for good, since the other parts are then useless, or when standard output is closed. */
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #options: ProvingOptions;
  readonly #began: number;
  #progress: Progress | null = null;
  #cuts = 0;
  readonly #editions: NewestEdition;

  constructor(command: PullCommand, io: PullIo, key: string | null) {
    const { compression, retryForMs } = command;
    const { stdout, clock } = io;
    this.#command = command;
    this.#io = io;
    this.#began = clock.now();
    this.#signal = AbortSignal.any([io.signal, this.#stop.signal]);
    // A write may fail after the pull has gone on to wait for more rows.
    stdout.on('error', (error) => this.#stop.abort(error));
    this.#options = {
      ...DEFAULTS,
      compression,
      key,
      retryForMs,
      clock,
      signal: this.#signal,
      onInterrupted: ({ message }, waitMs) => {
        this.#cuts++;
        this.#say(`${message}; retrying in ${(waitMs / 1000).toFixed(1)} s`);
      },
    };
    this.#editions = new NewestEdition(command, io, { ...this.#options, getAnswer, decompress });
  }

  /** Pulls to where the command says. */
  async run(): Promise<void> {
    const { output, follow, into } = this.#command;
    if (follow || into !== null) await this.#keep();
    else await (output === STDOUT ? this.#toStdout() : this.#toFile());
  }

  #say(line: string): void {
    if (this.#progress) this.#progress.line(line);
    else this.#io.stderr.write(`${line}\n`);
  }

  /** The estimate is only shown. A server that does not provide one is pulled from all the same. */
  async #estimate(): Promise<number | null> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(ESTIMATE_MS)]);
    try {
      return await getEstimate(this.#command.url, { ...this.#options, signal });
    } catch (error) {
      this.#signal.throwIfAborted();
      if (error instanceof Refusal || error instanceof Interruption) return null;
      throw error;
    }
  }

  /** Shows how far the work is, which calls `show`. `isWhole`: whether it is about all rows. */
  async #showing(
    before: ProvedPlace,
    isWhole: boolean,
    work: (show: (place: ProvedPlace) => void) => Promise<void>,
  ): Promise<void> {
    const now = () => this.#io.clock.now();
    const total = isWhole ? await this.#estimate() : null;
    const describe = describer(before, now);
    const shown = (this.#progress = startProgress(this.#io, total, { from: before.rows, now }));
    try {
      await work((place) => shown.update(place.rows, describe(place)));
    } finally {
      shown.stop();
      this.#progress = null;
    }
  }

  /** Fills a copy with the rows of a stream, from the copy's place on. Yields each proof when the copy has its rows. */
  async *#fill(
    copy: Copy,
    from: URL,
    more: Partial<ProvingOptions> = {},
  ): AsyncGenerator<Proof, void, undefined> {
    for await (const step of provedRows(from, { ...this.#options, from: copy.place, ...more })) {
      if (step.kind === 'rows') copy.add(step.bytes);
      else if (step.kind === 'void') await copy.takeBack();
      else if (step.kind === 'restart') {
        if (copy.place.cursor !== null && (await this.#editions.bring(copy, step.reason))) {
          yield* this.#fill(copy, from, more);
          return;
        }
        if (!copy.restart)
          throw new Refusal(
            `${step.reason} ${copy.name} can no longer be brought up to date: --restart begins it anew`,
          );
        this.#say(`${step.reason}; starting again with an empty copy`);
        await copy.restart();
      } else {
        await copy.prove(step.place);
        yield step;
      }
    }
  }

  /** The ids of all rows, each once: a row comes once in a stream that does not follow. */
  async *#ids(): AsyncGenerator<Buffer, void, undefined> {
    const all = new URL(this.#command.url);
    all.searchParams.set('fields', '_id');
    for await (const { chunks } of pull(all, this.#options)) yield Buffer.concat(chunks);
  }

  async #update(copy: Copy, show: (place: ProvedPlace) => void): Promise<void> {
    const { url, follow } = this.#command;
    let wasCurrent = false;
    try {
      for await (const { place, upToDate } of this.#fill(copy, url, { follow: true })) {
        show(place);
        if (upToDate && !wasCurrent) {
          await copy.confirm?.(() => this.#ids());
          this.#say('the copy is up to date');
        }
        wasCurrent = upToDate;
        if (upToDate && !follow) break;
      }
    } catch (error) {
      const isEnd = follow && wasCurrent && this.#io.signal.aborted; // there is no other end
      if (!isEnd) throw error;
    }
  }

  /**
   * Brings a copy up to date, first by all rows when it is new, and closes it. `--follow`: when the user interrupts.
   */
  async #keep(): Promise<void> {
    const copy = await openCopy(this.#command, this.#io.stdout, this.#io.signal);
    const { isEdition, edition } = this.#command;
    const isStatic = isEdition && edition?.isStatic === true;
    let before = copy.place;
    try {
      if (isStatic || (isEdition && before.cursor === null)) await this.#editions.bring(copy, null);
      if (isStatic) return;
      before = copy.place;
      await this.#showing(before, before.cursor === null, (show) => this.#update(copy, show));
    } finally {
      await copy.close();
    }
    this.#say(followSummary(copy.place.rows - before.rows, copy.name));
  }

  async #toStdout(): Promise<void> {
    const copy = pipeTo(this.#io.stdout, this.#io.signal);
    await this.#showing(BEGINNING, true, async (show) => {
      for await (const { place } of this.#fill(copy, this.#command.url)) show(place);
    });
    this.#signal.throwIfAborted();
    this.#report(copy.place, copy.name);
  }

  async #toFile(): Promise<void> {
    const { url, output, restart } = this.#command;
    const workspace = await openWorkspace(output, url.href, { restart, begin: () => this.#parts() });
    try {
      await this.#showing(workspace.proved(), true, (show) => this.#fillParts(workspace, show));
    } finally {
      await workspace.close();
    }
    await workspace.finish(this.#signal);
    this.#report(workspace.proved(), output);
  }

  /** The URLs of the parts that a new file is pulled in. */
  async #parts(): Promise<string[]> {
    const { url, parallel } = this.#command;
    if (parallel === 1) return [url.href];
    const options = this.#options;
    return new Backoff(options).run((signal) => getParts(url, parallel, { ...options, signal }));
  }

  async #fillParts(workspace: Workspace, show: (place: ProvedPlace) => void): Promise<void> {
    const before = workspace.proved().rows;
    if (before > 0) this.#say(`continuing after ${countOf(before, 'row')}`);
    const filling = workspace.parts.map(async ({ url: part, file }) => {
      const firstRow = await file.firstRow();
      for await (const { rows } of this.#fill(file, new URL(part), { firstRow }))
        if (rows > 0) show(workspace.proved());
    });
    try {
      await Promise.all(filling);
    } catch (error) {
      this.#stop.abort(error);
      await Promise.allSettled(filling);
      throw error;
    }
  }

  #report(place: ProvedPlace, name: string): void {
    this.#say(summary(place, this.#cuts, this.#io.clock.now() - this.#began, name));
  }
}
