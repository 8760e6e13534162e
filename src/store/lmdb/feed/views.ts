import { randomBytes } from 'node:crypto';
import { isSameView, type View } from '../../part-view.ts';
import { joinKeys, type Key } from '../../keys.ts';
import type { Tables } from '../tables.ts';
import { setKey } from './log-keys.ts';

const VIEWS = Buffer.from('views of ');
const SECRET_KEY = Buffer.from('secret of views');
const SECRET_BYTES = 32;
/** A view that is in use is marked so anew after this part of the time for which changes are kept. */
const MARKED_AFTER = 1 / 4;
/** The most views of a set: each makes every change of its rows a little longer. */
const MOST_VIEWS = 32;

/** A view, as the file keeps it. */
export interface ViewRecord extends View {
  /** Never that of another view of the set. */
  readonly number: number;
  /** The log tells of it from behind this sequence number on. */
  readonly since: number;
  /** When a reader had it, in milliseconds since 1970; older by a part of the time for which changes are kept. */
  readonly usedAt: number;
}

interface Views {
  readonly next: number;
  readonly views: readonly ViewRecord[];
}

const NONE: Views = { next: 0, views: [] };

/**
 * The views of each set, for which the log notes what rows were before their changes. They are in the file, because any
 * process may write the rows. A view whose readers have all been away for as long as changes are kept is dropped:
 * their places have expired.
 */
export class LogViews {
  readonly #tables: Tables;
  readonly #options: { readonly ttlMs: number; readonly now: () => number };
  /** What was read last of each set, with its bytes. */
  readonly #known = new Map<number, { readonly bytes: Uint8Array; readonly views: Views }>();

  #secret: Uint8Array | null = null;

  constructor(tables: Tables, options: { readonly ttlMs: number; readonly now: () => number }) {
    this.#tables = tables;
    this.#options = options;
  }

  of(set: number): readonly ViewRecord[] {
    return this.#read(set).views;
  }

  /** Undefined: the log does not note it. */
  find(set: number, view: View): ViewRecord | undefined {
    return this.of(set).find((one) => isSameView(one, view));
  }

  /** Whether a view must be marked as used, or added. */
  isDue(set: number, view: View): boolean {
    const found = this.find(set, view);
    return !found || this.#options.now() - found.usedAt > this.#options.ttlMs * MARKED_AFTER;
  }

  /**
   * In a transaction: adds a view, or marks it as used, and drops those that nobody uses. `last`: the sequence number of
   * the last change. Returns false when the set has too many views.
   */
  keep(set: number, view: View, last: number): boolean {
    const { next, views } = this.#read(set);
    const usedAt = this.#options.now();
    const found = views.find((one) => isSameView(one, view));
    const others = views.filter((one) => one !== found && usedAt - one.usedAt <= this.#options.ttlMs);
    if (others.length >= MOST_VIEWS) return false;
    const kept = found ? { ...found, usedAt } : { ...view, number: next, since: last, usedAt };
    const all: Views = { next: found ? next : next + 1, views: [...others, kept] };
    this.#tables.meta.putSync(viewsKey(set), Buffer.from(JSON.stringify(all)));
    if (!this.#tables.meta.getBinary(SECRET_KEY))
      this.#tables.meta.putSync(SECRET_KEY, randomBytes(SECRET_BYTES));
    return true;
  }

  /** Seals the places of readers of parts. The file has it when it has a view. */
  get secret(): Uint8Array {
    this.#secret ??= this.#tables.meta.getBinary(SECRET_KEY) ?? null;
    if (!this.#secret) throw new Error('the file has no secret of views');
    return this.#secret;
  }

  /** In a transaction: forgets the views of a set that nothing leads to any more. */
  forget(set: number): void {
    this.#tables.meta.removeSync(viewsKey(set));
  }

  #read(set: number): Views {
    const bytes = this.#tables.meta.getBinary(viewsKey(set));
    if (!bytes) return NONE;
    const known = this.#known.get(set);
    if (known && Buffer.compare(known.bytes, bytes) === 0) return known.views;
    const views = JSON.parse(Buffer.from(bytes).toString()) as Views;
    this.#known.set(set, { bytes: Buffer.from(bytes), views });
    return views;
  }
}

function viewsKey(set: number): Key {
  return joinKeys(VIEWS, setKey(set));
}
