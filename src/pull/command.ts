import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, reasonOf } from '../error-reason.ts';
import { duration, startProgress, type Console, type Progress } from '../terminal/progress.ts';
import { counted, countOf, printable } from '../terminal/text.ts';
import { STDOUT, type PullCommand } from './arguments.ts';
import type { Copy } from './copy.ts';
import { openCopy, pipeTo } from './open-copy.ts';
import { BEGINNING, type Proof, type ProvedPlace } from './proof.ts';
import { provedRows, type ProvingOptions } from './proved-rows.ts';
import { DEFAULTS, pull } from './pull.ts';
import { Backoff, Interrupted, Refused, type Clock } from './retry.ts';
import { getEstimate, getParts } from './side-requests.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

export { parsePullArguments, PULL_HELP, type PullCommand } from './arguments.ts';
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
    if (output !== STDOUT) checkPlace(output);
    await pullTo(command, io, keyFile === null ? null : await readKey(keyFile));
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

async function pullTo(command: PullCommand, io: PullIo, key: string | null): Promise<void> {
  const { url, output, parallel, compression, retryForMs, restart, follow, into } = command;
  const { stdout, stderr, clock } = io;
  const now = () => clock.now();
  const began = now();
  /** Aborted when one part fails for good, since the other parts are then useless, or when standard output is closed. */
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  // A write may fail after the pull has gone on to wait for more rows.
  stdout.on('error', (error) => stop.abort(error));
  let progress: Progress | null = null;
  const say = (line: string): void => {
    if (progress) progress.line(line);
    else stderr.write(`${line}\n`);
  };
  let cuts = 0;
  const options: ProvingOptions = {
    ...{ ...DEFAULTS, compression, key, retryForMs, clock, signal },
    onInterrupted: ({ message }, waitMs) => {
      cuts++;
      say(`${message}; retrying in ${(waitMs / 1000).toFixed(1)} s`);
    },
  };

  /** The estimate is only shown. A server that does not provide one is pulled from all the same. */
  const estimate = async (): Promise<number | null> => {
    const soon = AbortSignal.any([signal, AbortSignal.timeout(ESTIMATE_MS)]);
    try {
      return await getEstimate(url, { ...options, signal: soon });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Refused || error instanceof Interrupted) return null;
      throw error;
    }
  };

  /** Shows how far the work is, which calls `show`. `isWhole`: whether it is about all rows. */
  const showing = async (
    before: ProvedPlace,
    isWhole: boolean,
    work: (show: (place: ProvedPlace) => void) => Promise<void>,
  ): Promise<void> => {
    const total = isWhole ? await estimate() : null;
    const describe = describer(before, now);
    const shown = (progress = startProgress(io, total, { from: before.rows, now }));
    try {
      await work((place) => shown.update(place.rows, describe(place)));
    } finally {
      shown.stop();
      progress = null;
    }
  };

  /** Fills a copy with the rows of a stream, from the copy's place on. Yields each proof when the copy has its rows. */
  async function* fill(
    copy: Copy,
    from: URL,
    more: Partial<ProvingOptions> = {},
  ): AsyncGenerator<Proof, void, undefined> {
    for await (const step of provedRows(from, { ...options, from: copy.place, ...more })) {
      if (step.kind === 'rows') copy.add(step.bytes);
      else if (step.kind === 'void') await copy.takeBack();
      else if (step.kind === 'restart') {
        if (!copy.restart)
          throw new Refused(
            `${step.reason} ${copy.name} can no longer be brought up to date: --restart begins it anew`,
          );
        say(`${step.reason}; starting again with an empty copy`);
        await copy.restart();
      } else {
        await copy.prove(step.place);
        yield step;
      }
    }
  }

  /** The ids of all rows, each once: a row comes once in a stream that does not follow. */
  async function* ids(): AsyncGenerator<Buffer, void, undefined> {
    const all = new URL(url);
    all.searchParams.set('fields', '_id');
    for await (const { chunks } of pull(all, options)) yield Buffer.concat(chunks);
  }

  const update = async (copy: Copy, show: (place: ProvedPlace) => void): Promise<void> => {
    let wasCurrent = false;
    try {
      for await (const { place, upToDate } of fill(copy, url, { follow: true })) {
        show(place);
        if (upToDate && !wasCurrent) {
          await copy.confirm?.(ids);
          say('the copy is up to date');
        }
        wasCurrent = upToDate;
        if (upToDate && !follow) break;
      }
    } catch (error) {
      const isEnd = follow && wasCurrent && io.signal.aborted; // there is no other end
      if (!isEnd) throw error;
    }
  };

  /**
   * Brings a copy up to date, first by all rows when it is new, and closes it. `--follow`: when the user interrupts.
   */
  const keep = async (): Promise<void> => {
    const copy = await openCopy(command, stdout, io.signal);
    const before = copy.place;
    try {
      await showing(before, before.cursor === null, (show) => update(copy, show));
    } finally {
      await copy.close();
    }
    say(followSummary(copy.place.rows - before.rows, copy.name));
  };

  const report = (place: ProvedPlace, name: string) => say(summary(place, cuts, now() - began, name));

  const toStdout = async (): Promise<void> => {
    const copy = pipeTo(stdout, io.signal);
    await showing(BEGINNING, true, async (show) => {
      for await (const { place } of fill(copy, url)) show(place);
    });
    signal.throwIfAborted();
    report(copy.place, copy.name);
  };

  const fillParts = async (workspace: Workspace, show: (place: ProvedPlace) => void): Promise<void> => {
    const before = workspace.proved().rows;
    if (before > 0) say(`continuing after ${countOf(before, 'row')}`);
    const filling = workspace.parts.map(async ({ url: part, file }) => {
      const firstRow = await file.firstRow();
      for await (const { rows } of fill(file, new URL(part), { firstRow }))
        if (rows > 0) show(workspace.proved());
    });
    try {
      await Promise.all(filling);
    } catch (error) {
      stop.abort(error);
      await Promise.allSettled(filling);
      throw error;
    }
  };

  const toFile = async (): Promise<void> => {
    const begin = async () =>
      parallel === 1
        ? [url.href]
        : new Backoff(options).run((attempt) => getParts(url, parallel, { ...options, signal: attempt }));
    const workspace = await openWorkspace(output, url.href, { restart, begin });
    try {
      await showing(workspace.proved(), true, (show) => fillParts(workspace, show));
    } finally {
      await workspace.close();
    }
    await workspace.finish(signal);
    report(workspace.proved(), output);
  };

  if (follow || into !== null) await keep();
  else await (output === STDOUT ? toStdout() : toFile());
}

/** Returns the function that describes the number of rows and bytes so far, with the rate since now. `now`: milliseconds. */
function describer(before: ProvedPlace, now: () => number): (place: ProvedPlace) => string {
  const began = now();
  return ({ rows, bytes }) => {
    const rate = (rows - before.rows) / Math.max(0.001, (now() - began) / 1000);
    return `${countOf(rows, 'row')}, ${sizeOf(bytes)}, ${counted(Math.round(rate))} rows/s`;
  };
}

function summary(place: ProvedPlace, cuts: number, ms: number, name: string): string {
  const crc = place.crc32.toString(16).padStart(8, '0');
  const set = `${countOf(place.rows, 'row')}, ${counted(place.bytes)} bytes of NDJSON, CRC-32 ${crc}`;
  const run = `in ${duration(ms / 1000)} with ${countOf(cuts, 'cut')}`;
  return `pulled and proved ${set}, ${run}: ${name}`;
}

/** The report on a copy that was brought up to date by a number of lines. */
function followSummary(lines: number, name: string): string {
  return `proved ${counted(Math.max(0, lines))} lines of rows and removals: ${name}`;
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}
