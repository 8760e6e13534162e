import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import type { Copy } from './copy.ts';
import { isMissing, lastTruePlace, PartFile } from './part-file.ts';
import { BEGINNING, type ProvedPlace } from './proof.ts';
import { Refused } from './retry.ts';

const STATE_VERSION = 1;

/**
 * A file that grows: all rows of a set, then a line for each change. Whoever applies its lines by id, in their order,
 * has the set. `FILE.state` says how far it is proved. When a run is killed at any time, the next run removes what is
 * not proved and continues.
 */
export class ChangeLog implements Copy {
  readonly name: string;
  readonly #url: string;
  readonly #file: PartFile;
  /** What was added is written in its order. */
  #written: Promise<void> = Promise.resolve();

  private constructor(name: string, url: string, file: PartFile) {
    this.name = name;
    this.#url = url;
    this.#file = file;
  }

  /** Rejects with Refused when the file is not the one that an earlier run of the same URL left. */
  static async open(path: string, url: string, restart: boolean): Promise<ChangeLog> {
    if (restart) await Promise.all([rm(path, { force: true }), rm(stateOf(path), { force: true })]);
    const state = await readState(path);
    if (state === null && (await sizeOf(path)) > 0)
      throw new Refused(`${path} exists and is not the file of a followed set: --restart replaces it`);
    if (state && state.url !== url)
      throw new Refused(`${path} follows ${state.url}: --restart begins with another set`);
    const wanted = state?.place ?? BEGINNING;
    if (wanted.bytes > 0 && (await lastTruePlace(path, [wanted])) !== wanted)
      throw new Refused(`${path} is not what the earlier run wrote: --restart begins it anew`);
    const file = await PartFile.at(path, wanted);
    return new ChangeLog(path, url, file);
  }

  get place(): ProvedPlace {
    return this.#file.place;
  }

  add(bytes: Buffer): void {
    const copied = Buffer.from(bytes);
    this.#written = this.#written.then(() => this.#file.append(copied));
    this.#written.catch(() => undefined); // the next proof rejects with it
  }

  async prove(place: ProvedPlace): Promise<void> {
    await this.#written;
    await this.#file.prove(place, async () => {
      await this.#file.sync();
      await writeState(this.name, { url: this.#url, place });
    });
  }

  async takeBack(): Promise<void> {
    await this.#written;
    await this.#file.takeBack();
  }

  /** Somebody may have read what the file says, and it cannot tell him to begin anew. */
  restart(): Promise<void> {
    throw new Refused(`${this.name} can no longer be brought up to date: --restart begins it anew`);
  }

  async close(): Promise<void> {
    await this.takeBack();
    await this.#file.close();
  }
}

interface State {
  readonly url: string;
  readonly place: ProvedPlace;
}

function stateOf(path: string): string {
  return `${path}.state`;
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

/** Null when there is none. */
async function readState(path: string): Promise<State | null> {
  try {
    const { version, url, place } = JSON.parse(await readFile(stateOf(path), 'utf8')) as Partial<State> & {
      readonly version?: unknown;
    };
    if (version === STATE_VERSION && url !== undefined && place) return { url, place };
  } catch (error) {
    if (isMissing(error)) return null;
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new Refused(`${stateOf(path)} is not the state of a followed set: --restart discards it`);
}

/** Replaces the state: a kill leaves the old one or the new one. */
async function writeState(path: string, state: State): Promise<void> {
  const fresh = `${stateOf(path)}.new`;
  const handle = await open(fresh, 'w');
  try {
    await handle.writeFile(JSON.stringify({ version: STATE_VERSION, ...state }));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(fresh, stateOf(path));
}
