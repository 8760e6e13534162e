import { open, readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { Refused } from './failure.ts';
import type { Place } from './place.ts';

/** What is pulled: the URL as it was given, and the URLs of its parts in order (itself when there is one). */
export interface Task {
  readonly url: string;
  readonly parts: readonly string[];
}

/** A task with the places each part has come to, the last one last. */
export interface Begun {
  readonly task: Task;
  readonly places: readonly (readonly Place[])[];
}

const VERSION = 1;

/**
 * The state file of a pull: a line with the task, then a line for each proof of a part, only ever appended to. What a kill leaves
 * of its last line is no line. It promises nothing about the disk: whoever goes on checks the parts against it.
 */
export class StateFile {
  readonly #path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  /** What an earlier run left; null when there is nothing. Refused when the file is no state. */
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

  /** Writes the file anew, whole or not at all, and goes on behind it. */
  static async begin(path: string, task: Task, places: readonly Place[]): Promise<StateFile> {
    const fresh = `${path}.new`;
    const lines = [{ version: VERSION, task }, ...places.map((place, part) => ({ part, place }))];
    const handle = await open(fresh, 'w');
    await handle.writeFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await rename(fresh, path);
    return new StateFile(path, handle);
  }

  /** A part has come to a place: its rows up to there are in its file. */
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

/** An empty object for what is no JSON object: a line that a kill tore. */
function parse(line: string): object {
  try {
    return Object(JSON.parse(line)) as object;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
