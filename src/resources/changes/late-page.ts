import type { FeedReader } from '../../store/turns/readers.ts';
import type { Page, Stop } from './page.ts';

/** The page of followers behind the newest one, from the first of their places on. */
export class LatePage {
  /** See Pages. */
  readonly page: Promise<Page | null>;
  readonly #changes: Pick<FeedReader, 'reaches'>;
  #from: Stop;
  #hasBegun = false;

  /** `read` is called behind `wait`, which gives others the time to come. */
  constructor(
    from: Stop,
    changes: Pick<FeedReader, 'reaches'>,
    wait: Promise<unknown>,
    read: (from: Stop) => Promise<Page | null>,
  ) {
    this.#changes = changes;
    this.#from = from;
    this.page = wait.then(() => {
      this.#hasBegun = true;
      return read(this.#from);
    });
  }

  /** Lets a follower have the page. False: it is behind the first place of a page that is being read. */
  admits(at: Stop): boolean {
    if (this.#changes.reaches(at.place, this.#from.place)) return true;
    if (this.#hasBegun) return false;
    this.#from = at;
    return true;
  }
}
