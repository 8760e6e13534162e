import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { duration, startProgress, type Console, type Progress } from '../terminal/progress.ts';
import { counted, countOf, sizeOf } from '../terminal/text.ts';
import type { PullCommand } from './arguments.ts';
import {
  completed,
  exportBytes,
  exportUrls,
  type DownloadOptions,
  type ExportedFile,
} from './export-file.ts';
import { Refusal } from './retry.ts';
import { isMissing, readState, writeState } from './state.ts';

/** How much is read of a file at once. Bytes. */
const READ_BYTES = 1024 * 1024;

/** The download of an export's file: `FILE.part` grows, and is FILE once its SHA-256 is that of the export. */
export class ExportRun {
  readonly #command: PullCommand;
  readonly #console: Console;
  readonly #options: DownloadOptions;
  readonly #began: number;
  readonly #part: string;
  readonly #state: string;
  #progress: Progress | null = null;
  #cuts = 0;

  constructor(command: PullCommand, console: Console, options: DownloadOptions) {
    this.#command = command;
    this.#console = console;
    this.#part = `${command.output}.part`;
    this.#state = `${this.#part}.state`;
    this.#began = options.clock.now();
    this.#options = {
      ...options,
      onInterrupted: ({ message }, waitMs) => {
        this.#cuts++;
        this.#say(`${message}; retrying in ${(waitMs / 1000).toFixed(1)} s`);
      },
    };
  }

  async run(): Promise<void> {
    const urls = exportUrls(this.#command.url);
    if (!urls) throw new TypeError(`not the URL of an export: ${this.#command.url.href}`);
    await this.#claim(urls.file);
    const file = await completed(urls.status, this.#options);
    const handle = await open(this.#part, 'a');
    try {
      await this.#fill(handle, urls.file, file);
    } finally {
      const isEmpty = file.bytes > 0 && (await handle.stat()).size === 0;
      await handle.close();
      if (isEmpty) await this.#forget(); // it is of no use to the next run
    }
    await rename(this.#part, this.#command.output);
    await rm(this.#state, { force: true });
    this.#report(file);
  }

  #say(line: string): void {
    if (this.#progress) this.#progress.line(line);
    else this.#console.stderr.write(`${line}\n`);
  }

  /** Makes the part file this export's. Rejects with Refusal when it is another pull's. The file of an export never changes. */
  async #claim(file: URL): Promise<void> {
    const { output, restart } = this.#command;
    const found = restart ? null : await readState(this.#state);
    if (found?.task.url === file.href) return;
    const isOfRows = found?.places.some((places) => places.some(({ rows }) => rows > 0)) ?? false;
    const isOfFile = found?.places.length === 0 && (await this.#begun()) > 0;
    if (found && (isOfRows || isOfFile))
      throw new Refusal(`${output}.part belongs to a pull of ${found.task.url}: --restart discards it`);
    await this.#forget();
    await writeState(this.#state, { task: { url: file.href, parts: [] }, places: [] });
  }

  async #begun(): Promise<number> {
    return (await stat(this.#part).catch(unlessMissing))?.size ?? 0;
  }

  async #forget(): Promise<void> {
    await rm(this.#part, { force: true });
    await rm(this.#state, { force: true });
  }

  async #fill(handle: FileHandle, url: URL, file: ExportedFile): Promise<void> {
    const hash = createHash('sha256');
    const before = await this.#hashed(hash);
    if (before > 0) this.#say(`continuing after ${sizeOf(before)}`);
    await this.#showing(file.bytes, before, async (show) => {
      let at = before;
      for await (const chunk of exportBytes(url, file, at, this.#options)) {
        await handle.writeFile(chunk);
        hash.update(chunk);
        at += chunk.length;
        show(at);
      }
    });
    if (before <= file.bytes && hash.digest('hex') === file.sha256) return handle.sync();
    await handle.truncate(0);
    throw new Refusal(`the bytes that came are not the file of the export, whose SHA-256 is ${file.sha256}`);
  }

  /** Adds what an earlier run has left to a hash. Resolves with its length. */
  async #hashed(hash: Hash): Promise<number> {
    let length = 0;
    for await (const chunk of createReadStream(this.#part, { highWaterMark: READ_BYTES })) {
      hash.update(chunk as Buffer);
      length += (chunk as Buffer).length;
    }
    return length;
  }

  async #showing(
    total: number,
    from: number,
    work: (show: (at: number) => void) => Promise<void>,
  ): Promise<void> {
    const now = () => this.#options.clock.now();
    const began = now();
    const shown = (this.#progress = startProgress(this.#console, total, { from, now }));
    try {
      await work((at) => {
        const rate = (at - from) / Math.max(0.001, (now() - began) / 1000);
        shown.update(at, `${sizeOf(at)}, ${sizeOf(rate)}/s`);
      });
    } finally {
      shown.stop();
      this.#progress = null;
    }
  }

  #report({ rows, bytes, sha256 }: ExportedFile): void {
    const run = `in ${duration((this.#options.clock.now() - this.#began) / 1000)} with ${countOf(this.#cuts, 'cut')}`;
    const what = `${countOf(rows, 'row')}, ${counted(bytes)} bytes, SHA-256 ${sha256}`;
    this.#say(`pulled and proved ${what}, ${run}: ${this.#command.output}`);
  }
}

function unlessMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}
