import { reasonOf } from '../../../thrown.ts';
import type { Commits } from '../commits.ts';
import type { Tables } from '../tables.ts';
import { sweep } from './clear.ts';
import type { Resources } from './record.ts';

export interface SweeperOptions {
  readonly tables: Tables;
  readonly resources: Resources;
  readonly commits: Pick<Commits, 'run'>;
  /** Called before each look at the file. Throws when it cannot be read. */
  readonly begin: () => void;
  readonly onWarning: (message: string) => void;
}

/** Frees the space of removed rows. A process that was killed may have left some. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #running = new Set<Promise<void>>();
  #isOpen = true;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** Frees space in the background. */
  sweepLater(): void {
    const sweeping = this.sweep()
      .catch((error: unknown) => this.#options.onWarning(`removed rows still take space: ${reasonOf(error)}`))
      .finally(() => this.#running.delete(sweeping));
    this.#running.add(sweeping);
  }

  async sweep(isWanted: () => boolean = () => true): Promise<void> {
    const { tables, resources, commits, begin } = this.#options;
    begin();
    await sweep(tables, resources, commits, () => this.#isOpen && isWanted());
  }

  /** Resolves when nothing is being freed. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.all(this.#running);
  }
}
