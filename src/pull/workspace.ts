import { assemble, removeParts, type Shape, type WholePart } from './assemble.ts';
import { Refused } from './failure.ts';
import { firstRowOf, lastTruePlace, PartFile } from './part-file.ts';
import { BEGINNING, sumOf, type Place } from './place.ts';
import { StateFile, type Task } from './state.ts';

/**
 * The files beside the output while it is pulled: `FILE.part` with the rows (`FILE.part.1` and so on for
 * several parts) and `FILE.part.state` (see state.ts). When a run is killed at any time, the next run finds
 * all that was proved.
 */
export class Workspace {
  readonly task: Task;
  readonly #output: string;
  readonly #state: StateFile;
  readonly #files: readonly PartFile[];
  readonly #places: Place[];

  private constructor(
    output: string,
    task: Task,
    parts: {
      readonly state: StateFile;
      readonly files: readonly PartFile[];
      readonly places: readonly Place[];
    },
  ) {
    this.task = task;
    this.#output = output;
    this.#state = parts.state;
    this.#files = parts.files;
    this.#places = [...parts.places];
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
    const path = statePath(output);
    const found = options.restart ? null : await StateFile.read(path);
    const begun = found?.places.some((places) => places.some(({ rows }) => rows > 0)) ? found : null;
    if (begun && begun.task.url !== url)
      throw new Refused(`${path} is of another pull (${begun.task.url}): --restart throws it away`);
    const task = begun?.task ?? { url, parts: await options.begin() };
    const paths = partPaths(output, task);
    const places: Place[] = [];
    for (const [n, part] of paths.entries()) places.push(await lastTruePlace(part, begun?.places[n] ?? []));
    const files: PartFile[] = [];
    for (const [n, part] of paths.entries()) files.push(await PartFile.open(part, places[n] ?? BEGINNING));
    const state = await StateFile.begin(path, task, places);
    return new Workspace(output, task, { state, files, places });
  }

  /** The proved place of each part. */
  get places(): readonly Place[] {
    return this.#places;
  }

  /** The beginning of the first row of a part (see Proof). null when the part has no row. */
  firstRowOf(part: number): Promise<string | null> {
    return firstRowOf(this.#parts()[part]?.file ?? '', this.#places[part] ?? BEGINNING);
  }

  /** Appends rows that are not proved yet. */
  async append(part: number, bytes: Buffer): Promise<void> {
    await this.#files[part]?.append(bytes);
  }

  /** Records that the rows up to a place are proved. The rows are written first, then the proof. */
  async prove(part: number, place: Place): Promise<void> {
    await this.#files[part]?.flush();
    await this.#state.add(part, place);
    this.#places[part] = place;
  }

  /** Removes the rows that are not proved. */
  async takeBack(part: number): Promise<void> {
    await this.#files[part]?.takeBack(this.#places[part] ?? BEGINNING);
  }

  /** Closes all files. Files without any row are useless to the next run and are removed. */
  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
    await this.#state.close();
    if (sumOf(this.#places).rows === 0 && !this.#places.every(({ ended }) => ended)) await this.#remove();
  }

  /**
   * Assembles all parts into one file, or each part into its own: FILE-1, FILE-2 before the extension.
   * Resolves with the names.
   */
  async finish(shape: Shape, split: boolean, signal: AbortSignal): Promise<string[]> {
    const parts = this.#parts();
    const outputs = split ? parts.map((_, n) => numbered(this.#output, n + 1)) : [this.#output];
    for (const [n, output] of outputs.entries())
      await assemble(split ? parts.slice(n, n + 1) : parts, output, shape, signal);
    await this.#remove();
    return outputs;
  }

  #parts(): WholePart[] {
    return partPaths(this.#output, this.task).map((file, n) => ({
      file,
      place: this.#places[n] ?? BEGINNING,
    }));
  }

  async #remove(): Promise<void> {
    await this.#state.remove();
    await removeParts(this.#parts());
  }
}

function statePath(output: string): string {
  return `${output}.part.state`;
}

function partPaths(output: string, { parts }: Task): string[] {
  return parts.map((_, n) => (parts.length === 1 ? `${output}.part` : `${output}.part.${n + 1}`));
}

function numbered(output: string, n: number): string {
  const [, stem = output, ending = ''] = /^(.*?[^/])(\.[^./]+)$/.exec(output) ?? [];
  return `${stem}-${n}${ending}`;
}
