import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { codeOf } from '../../thrown.ts';
import { pieceOf } from './footer.ts';

/** The optional package that writes Parquet. thread.mjs imports it. */
const LIBRARY = 'parquet-wasm';
const THREAD = new URL('./thread.mjs', import.meta.url);

const modules = createRequire(import.meta.url);

/** Why this process cannot write Parquet. Null when it can. */
export function whyNoParquet(): string | null {
  try {
    modules.resolve(LIBRARY);
    return null;
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    return `format parquet needs the package ${LIBRARY}, which this server does not have; its operator installs it with: npm install ${LIBRARY}`;
  }
}

/** What the thread answers: a file with one row group, or why there is none. */
type Answer = { readonly file: Uint8Array } | { readonly error: string };

interface Waiting {
  readonly resolve: (piece: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Makes row groups of Parquet in a thread, because each takes a core for up to half a second. The thread begins with the
 * first row group, and gives its memory back when it is closed.
 */
export class RowGroups {
  readonly #waiting: Waiting[] = [];
  #thread: Worker | null = null;
  #failure: Error | null = null;

  /** The piece of a file (see footer.ts) that an Arrow IPC stream becomes. The bytes of the stream are taken away. */
  make(stream: Uint8Array): Promise<Uint8Array> {
    if (this.#failure) return Promise.reject(this.#failure);
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const { buffer } = stream;
    const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === stream.byteLength;
    const own = isAlone ? new Uint8Array(buffer) : new Uint8Array(stream);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      thread.postMessage(own, [own.buffer]);
    });
  }

  /** Ends the thread. Pieces that are not made yet are rejected. */
  async close(): Promise<void> {
    this.#fail(new Error('the thread that writes Parquet is closed'));
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(THREAD, { name: 'parquet' });
    thread.on('message', (answer: Answer) => {
      const waiting = this.#waiting.shift();
      if ('file' in answer) waiting?.resolve(pieceOf(answer.file));
      else waiting?.reject(new Error(`a row group of Parquet could not be written: ${answer.error}`));
    });
    thread.on('error', (error) => this.#fail(error));
    thread.on('exit', (code) =>
      this.#fail(new Error(`the thread that writes Parquet ended with code ${code}`)),
    );
    return thread;
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}
