import type { ObjectStore } from '../../store/objects.ts';
import type { Action } from './actions.ts';
import { checkpointOf } from './parquet.ts';

/** What a log needs of the port. */
export type LogObjects = Pick<ObjectStore, 'put' | 'get' | 'list' | 'remove'>;

const FILE = /\/_delta_log\/(\d{20})(\.json|\.checkpoint\.parquet)$/;

/** The files of a Delta log, as they were listed, with those that were put since then. */
export class LogFiles {
  /** Their folder. It ends with a slash. */
  readonly folder: string;
  readonly #objects: LogObjects;
  readonly #commits: Set<number>;
  readonly #checkpoints: Set<number>;

  private constructor(objects: LogObjects, folder: string, commits: Set<number>, checkpoints: Set<number>) {
    this.#objects = objects;
    this.folder = folder;
    this.#commits = commits;
    this.#checkpoints = checkpoints;
  }

  static async list(objects: LogObjects, resource: string): Promise<LogFiles> {
    const folder = `${resource}/_delta_log/`;
    const commits = new Set<number>();
    const checkpoints = new Set<number>();
    for await (const { path } of objects.list(folder)) {
      const [, version, suffix] = FILE.exec(path) ?? [];
      if (version !== undefined) (suffix === '.json' ? commits : checkpoints).add(Number(version));
    }
    return new LogFiles(objects, folder, commits, checkpoints);
  }

  /** The newest version. -1: there is none. */
  get newest(): number {
    return Math.max(-1, ...this.#commits, ...this.#checkpoints);
  }

  get newestCheckpoint(): number {
    return Math.max(-1, ...this.#checkpoints);
  }

  /** The actions of a commit. Null when there is none. */
  async commit(version: number): Promise<readonly Action[] | null> {
    const bytes = await this.#objects.get(this.#commitFile(version));
    if (!bytes) return null;
    const lines = Buffer.from(bytes).toString().split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Action);
  }

  /** Resolves with whether there was none of this version. */
  async putCommit(version: number, actions: readonly Action[]): Promise<boolean> {
    const text = actions.map((action) => `${JSON.stringify(action)}\n`).join('');
    const isNew = await this.#objects.put(this.#commitFile(version), Buffer.from(text), { isNew: true });
    this.#commits.add(version);
    return isNew;
  }

  /** Stores a checkpoint, and then says that there is one. A reader without this hint lists the folder. */
  async putCheckpoint(version: number, state: readonly Action[]): Promise<void> {
    await this.#objects.put(this.#checkpointFile(version), await checkpointOf(state), { isNew: true });
    this.#checkpoints.add(version);
    const hint = JSON.stringify({ version, size: state.length });
    await this.#objects.put(`${this.folder}_last_checkpoint`, Buffer.from(hint));
  }

  /** Removes what no reader of a version or of later ones needs: all before the newest checkpoint of these and earlier versions. */
  async removeBefore(version: number): Promise<void> {
    const base = Math.max(-1, ...[...this.#checkpoints].filter((checkpoint) => checkpoint <= version));
    const isOld = (one: number) => one < base;
    // In their order, so that what is left has no gap.
    for (const old of [...this.#commits].filter(isOld).sort((a, b) => a - b))
      await this.#objects.remove(this.#commitFile(old));
    for (const old of [...this.#checkpoints].filter(isOld))
      await this.#objects.remove(this.#checkpointFile(old));
  }

  #commitFile(version: number): string {
    return `${this.folder}${digitsOf(version)}.json`;
  }

  #checkpointFile(version: number): string {
    return `${this.folder}${digitsOf(version)}.checkpoint.parquet`;
  }
}

function digitsOf(version: number): string {
  return String(version).padStart(20, '0');
}
