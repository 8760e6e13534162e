import { open, readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { Refused } from './failure.ts';
import type { Place } from './place.ts';

/**
 * The task of a pull: the URL as it was given, and the URLs of its parts in order (the URL itself when there
 * is one part).
 */
export interface Task {
  readonly url: string;
  readonly parts: readonly string[];
}

/** A task with the proved places of each part, in the order in which they were reached. */
export interface Begun {
  readonly task: Task;
  readonly places: readonly (readonly Place[])[];
}

const VERSION = 1;

/**
 * The state file of a pull. It has a line with the task, then a line for each proof of a part, and only
 * grows. A last line that a kill truncated is ignored. The file promises nothing about the data on disk: the
 * next run checks the parts against it.
 */
export class StateFile {
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
  static async read(path: string): Promise<Begun | null> {
    const text = await readIfThere(path);
    if (text === null) return null;
    const [first = '', ...lines] = text.split('\n').slice(0, -1);
    const { version, task } = parse(first) as { version?: unknown; task?: Task };
    if (version !== VERSION || !task) throw new Refused(`${path} is not the state of a pull`);
    const places: Place[][] = task.parts.map(() => []);
    for (const line of lines) {
      const { part, place } = parse(line) as { part?: number; place?: Place };
      if (part === undefined || !place) break;
      places[part]?.push(place);
    }
    return { task, places };
  }

  /** Writes a new state file atomically, and keeps it open for appending. */
  static async begin(path: string, task: Task, places: readonly Place[]): Promise<StateFile> {
    const fresh = `${path}.new`;
    const lines = [{ version: VERSION, task }, ...places.map((place, part) => ({ part, place }))];
    const handle = await open(fresh, 'w');
    await handle.writeFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await rename(fresh, path);
    return new StateFile(path, handle);
  }

  /** Records that a part has reached a place. The rows up to there are in the part's file. */
  async add(part: number, place: Place): Promise<void> {
    await this.#handle.writeFile(`${JSON.stringify({ part, place })}\n`);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  remove(): Promise<void> {
    return rm(this.#path, { force: true });
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Parses a line. Returns an empty object when it is not a JSON object, such as a line that a kill truncated.
 */
function parse(line: string): object {
  try {
    return Object(JSON.parse(line)) as object;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
