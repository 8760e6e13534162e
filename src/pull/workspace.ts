import { open, readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { isMissing, PartFile } from './part-file.ts';
import { sumOf, type ProvedPlace } from './proof.ts';
import { Refused } from './retry.ts';

/** A part of the set: a range of ids, or all of it. */
interface Part {
  readonly url: string;
  readonly file: PartFile;
  /** Records that the rows up to a place are proved. The rows are written first, then the proof. */
  readonly prove: (place: ProvedPlace) => Promise<void>;
}

/**
 * The task of a pull: the URL as it was given, and the URLs of its parts in order (the URL itself when there
 * is one part).
 */
interface Task {
  readonly url: string;
  readonly parts: readonly string[];
}

/**
 * The files beside the output while it is pulled: `FILE.part` with the rows (`FILE.part.1` and so on for
 * several parts) and `FILE.part.state` with their proofs. When a run is killed at any time, the next run
 * finds all that was proved.
 */
export class Workspace {
  readonly #output: string;
  readonly #task: Task;
  readonly #state: StateFile;
  readonly #files: readonly PartFile[];

  private constructor(output: string, task: Task, state: StateFile, files: readonly PartFile[]) {
    this.#output = output;
    this.#task = task;
    this.#state = state;
    this.#files = files;
  }

  /**
   * Opens the remains of an earlier run of the same URL, or begins with the parts that `begin` returns.
   * Rejects with Refused when another URL is being pulled into this file.
   */
  static async open(
    output: string,
    url: string,
    options: { readonly restart: boolean; readonly begin: () => Promise<readonly string[]> },
  ): Promise<Workspace> {
    const statePath = `${output}.part.state`;
    const found = options.restart ? null : await StateFile.read(statePath);
    const saved = found?.places.some((places) => places.some(({ rows }) => rows > 0)) ? found : null;
    if (saved && saved.task.url !== url)
      throw new Refused(`${statePath} belongs to a pull of ${saved.task.url}: --restart discards it`);
    const task = saved?.task ?? { url, parts: await options.begin() };
    const files: PartFile[] = [];
    for (const n of task.parts.keys())
      files.push(await PartFile.open(partPath(output, task, n), saved?.places[n] ?? []));
    const places = files.map(({ place }) => place);
    return new Workspace(output, task, await StateFile.begin(statePath, task, places), files);
  }

  /** What is proved of all parts together. */
  get proved(): ProvedPlace {
    return sumOf(this.#files.map(({ place }) => place));
  }

  /** The parts of the set, in their order. */
  get parts(): readonly Part[] {
    return this.#files.map((file, n) => ({
      url: this.#task.parts[n] ?? '',
      file,
      prove: (place) => file.prove(place, () => this.#state.add(n, place)),
    }));
  }

  /** Closes all files. Files without any row are useless to the next run and are removed. */
  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
    await this.#state.close();
    if (this.proved.rows === 0 && !this.proved.ended) await this.#remove();
  }

  /** Makes the output file from all parts. */
  async finish(signal: AbortSignal): Promise<void> {
    await assemble(this.#files, this.#output, signal);
    await this.#remove();
  }

  async #remove(): Promise<void> {
    await this.#state.remove();
    for (const file of this.#files) await file.remove();
  }
}

/**
 * Makes an output file from parts, in their order. Reads the parts back, checks them against their proofs,
 * and renames the file to its final name when it is whole and on disk. The parts stay, unless a single part
 * becomes the file.
 */
async function assemble(files: readonly PartFile[], output: string, signal: AbortSignal): Promise<void> {
  const [first] = files;
  if (first && files.length === 1) {
    for await (const chunk of first.proved()) if (chunk.length > 0) signal.throwIfAborted();
    await rename(first.path, output);
    return;
  }
  const fresh = `${output}.part.whole`;
  await writeWhole(joined(files), fresh, signal);
  await rename(fresh, output);
}

async function* joined(files: readonly PartFile[]): AsyncGenerator<Buffer, void, undefined> {
  for (const file of files) yield* file.proved();
}

async function writeWhole(content: AsyncIterable<Buffer>, path: string, signal: AbortSignal): Promise<void> {
  const handle = await open(path, 'w');
  try {
    for await (const chunk of content) {
      signal.throwIfAborted();
      await handle.writeFile(chunk);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function partPath(output: string, { parts }: Task, n: number): string {
  return parts.length === 1 ? `${output}.part` : `${output}.part.${n + 1}`;
}

const STATE_VERSION = 1;

/** What an earlier run left: its task, and the proved places of each part in the order of their proofs. */
interface SavedState {
  readonly task: Task;
  readonly places: readonly (readonly ProvedPlace[])[];
}

/**
 * The state file of a pull. It has a line with the task, then a line for each proof of a part, and only
 * grows. A last line that a kill truncated is ignored. The file promises nothing about the data on disk: the
 * next run checks the parts against it.
 */
class StateFile {
  readonly #path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  /**
   * Reads the state of an earlier run. Resolves with null when there is none. Rejects with Refused when the
   * file is not a state.
   */
  static async read(path: string): Promise<SavedState | null> {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    });
    if (text === null) return null;
    const [first = '', ...lines] = text.split('\n').slice(0, -1);
    const { version, task } = parse(first) as { version?: unknown; task?: Task };
    if (version !== STATE_VERSION || !task)
      throw new Refused(`${path} is not the state of a pull: --restart discards it`);
    const places: ProvedPlace[][] = task.parts.map(() => []);
    for (const line of lines) {
      const { part, place } = parse(line) as { part?: number; place?: ProvedPlace };
      if (part === undefined || !place) break;
      places[part]?.push(place);
    }
    return { task, places };
  }

  /** Writes a new state file atomically, and keeps it open for appending. */
  static async begin(path: string, task: Task, places: readonly ProvedPlace[]): Promise<StateFile> {
    const fresh = `${path}.new`;
    const lines = [{ version: STATE_VERSION, task }, ...places.map((place, part) => ({ part, place }))];
    const handle = await open(fresh, 'w');
    await handle.writeFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await rename(fresh, path);
    return new StateFile(path, handle);
  }

  /** Records that a part has reached a place. The rows up to there are in the part's file. */
  async add(part: number, place: ProvedPlace): Promise<void> {
    await this.#handle.writeFile(`${JSON.stringify({ part, place })}\n`);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  remove(): Promise<void> {
    return rm(this.#path, { force: true });
  }
}

/** The object of a line. It is empty when the line is not JSON, such as one that a kill truncated. */
function parse(line: string): object {
  try {
    return Object(JSON.parse(line)) as object;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
