import type { EditionHead } from '../../base/edition/head.ts';
import { duration, startProgress, type Console, type Progress } from '../../terminal/progress.ts';
import { counted, countOf, sizeOf } from '../../terminal/text.ts';
import type { Clock, Interruption } from '../retry.ts';

export interface ReportIo extends Console {
  readonly stdout: NodeJS.WritableStream;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** What a pull of an edition says while it runs. */
export class Report {
  readonly #io: ReportIo;
  readonly #name: string;
  readonly #began: number;
  #progress: Progress | null = null;
  #cuts = 0;

  /** `name`: of what the edition becomes. */
  constructor(io: ReportIo, name: string) {
    this.#io = io;
    this.#name = name;
    this.#began = io.clock.now();
  }

  get stdout(): NodeJS.WritableStream {
    return this.#io.stdout;
  }

  get signal(): AbortSignal {
    return this.#io.signal;
  }

  say(line: string): void {
    if (this.#progress) this.#progress.line(line);
    else this.#io.stderr.write(`${line}\n`);
  }

  interrupted({ message }: Interruption, waitMs: number): void {
    this.#cuts++;
    this.say(`${message}; retrying in ${(waitMs / 1000).toFixed(1)} s`);
  }

  /** Shows how many of so many rows are there, while the work calls `show`. */
  async showing<Result>(
    total: number,
    work: (show: (rows: number, bytes: number) => void) => Promise<Result>,
  ): Promise<Result> {
    const { clock } = this.#io;
    const shown = (this.#progress = startProgress(this.#io, total, { now: () => clock.now() }));
    try {
      return await work((rows, bytes) => shown.update(rows, `${countOf(rows, 'row')}, ${sizeOf(bytes)}`));
    } finally {
      shown.stop();
      this.#progress = null;
    }
  }

  /** `verb`: what was done with the edition. `received`: the bytes that came for it. */
  done({ edition, at, rows, bytes, crc32 }: EditionHead, verb: string, received: number): void {
    const set = `${countOf(rows, 'row')}, ${counted(bytes)} bytes of NDJSON, CRC-32 ${crc32}`;
    const time = duration((this.#io.clock.now() - this.#began) / 1000);
    const run = `${counted(received)} bytes received in ${time} with ${countOf(this.#cuts, 'cut')}`;
    this.say(`${verb} the edition ${edition} of ${at}: ${set}, ${run}: ${this.#name}`);
  }
}
