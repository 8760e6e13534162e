import { reasonOf } from '../../../thrown.ts';
import type { Commits } from '../commits.ts';
import type { Tables } from '../tables.ts';
import { buildIndexes } from './build.ts';
import { isInBuilding, type Resources } from './record.ts';
import { recordOf } from './write.ts';

/** How long a build that failed is left alone: each try costs a transaction and a line in the log. Milliseconds. */
const PAUSE_MS = 60_000;

export interface IndexBuildsOptions {
  readonly tables: Tables;
  readonly resources: Resources;
  readonly commits: Pick<Commits, 'run'>;
  /** A clock in milliseconds. */
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
}

/** Builds the indexes of full resources in the background, those of one resource in one build at a time. */
export class IndexBuilds {
  readonly #options: IndexBuildsOptions;
  readonly #running = new Map<string, Promise<void>>();
  /** When the last build of a resource failed. */
  readonly #failedAt = new Map<string, number>();
  #isOpen = true;

  constructor(options: IndexBuildsOptions) {
    this.#options = options;
  }

  /** Begins to build what is not whole, unless a build is under way or has failed within the last minute. */
  begin(collection: string): void {
    const { tables, resources, commits, now, onWarning } = this.#options;
    if (this.#running.has(collection) || !this.#isOpen) return;
    if (!recordOf(resources, collection).indexes.some(isInBuilding)) return; // a start needs no transaction
    const failedAt = this.#failedAt.get(collection);
    if (failedAt !== undefined && now() - failedAt < PAUSE_MS) return;
    const build = buildIndexes(tables, resources, collection, commits, () => this.#isOpen)
      .then(() => void this.#failedAt.delete(collection))
      .catch((error: unknown) => {
        this.#failedAt.set(collection, now());
        onWarning(
          `the indexes of ${collection} are not whole yet: ${reasonOf(error)}; the first request after a minute tries again`,
        );
      })
      .finally(() => this.#running.delete(collection));
    this.#running.set(collection, build);
  }

  /** Resolves when nothing is being built. What is unfinished goes on when its resource is opened again. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.all(this.#running.values());
  }
}
