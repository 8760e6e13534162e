import { createHash } from 'node:crypto';
import type { PullCommand } from '../arguments.ts';
import type { Copy } from '../copy.ts';
import { DEFAULTS } from '../pull.ts';
import { Refusal } from '../retry.ts';
import { bringToEdition } from './copy-edition.ts';
import { EditionFiles, NotThere, type EditionOptions } from './edition-files.ts';
import { Report, type ReportIo } from './report.ts';

type Requests = Pick<EditionOptions, 'key' | 'signal' | 'clock' | 'retryForMs' | 'getAnswer' | 'decompress'>;

/** The files of the editions of a command. */
export function filesOf(
  { edition }: PullCommand,
  report: Report,
  { key, signal, clock, retryForMs, getAnswer, decompress }: Requests,
): EditionFiles {
  if (!edition) throw new TypeError('the command has no edition');
  return new EditionFiles(edition, {
    key,
    signal,
    clock,
    retryForMs,
    idleMs: DEFAULTS.idleMs,
    getAnswer,
    decompress,
    sha256: (bytes) => createHash('sha256').update(bytes).digest('hex'),
    formats: ['ndjson.gz', 'ndjson.br', 'ndjson'],
    onInterrupted: (failure, waitMs) => report.interrupted(failure, waitMs),
  });
}

/** What brings the copy of a command to the newest edition. */
export class NewestEdition {
  readonly #command: PullCommand;
  readonly #io: ReportIo;
  readonly #requests: Requests;
  /** The edition that the copy was brought to. */
  #edition: string | null = null;

  constructor(command: PullCommand, io: ReportIo, requests: Requests) {
    this.#command = command;
    this.#io = io;
    this.#requests = requests;
  }

  /**
   * Brings a copy to the newest edition. Resolves with false when there is none, or when it was that already. `reason`: why
   * changes cannot do it. null: the user asked for an edition.
   */
  async bring(copy: Copy, reason: string | null): Promise<boolean> {
    const { edition, parallel } = this.#command;
    const kept = copy.asEdition;
    if (!edition || !kept) return false;
    const report = new Report({ ...this.#io, isTTY: false }, copy.name);
    const files = filesOf(this.#command, report, this.#requests);
    let head = await files.newest().catch((error: unknown) => {
      if (reason !== null && error instanceof Refusal) return null; // it need not have editions
      throw error;
    });
    while (head && head.edition !== this.#edition)
      try {
        if (reason !== null) report.say(`${reason}; reading what differs from the edition of ${head.at}`);
        await bringToEdition(kept, head, files, { report, parallel });
        this.#edition = head.edition;
        report.done(head, 'proved that the copy is', files.received);
        return true;
      } catch (error) {
        const newest = error instanceof NotThere ? await files.newest() : null;
        if (!newest || newest.edition === head.edition) throw error;
        head = newest;
      }
    return false;
  }
}
