import type { ReadBatch } from '../batch.ts';
import type { Bookmark } from '../bookmark.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { Index } from '../indexes.ts';
import { inOrderOf } from '../among/among-plans.ts';
import { predicateOf, type Scope } from './predicate.ts';
import { ScopedFeed } from './scoped-feed.ts';
import type { Collection, Count, CountMode, Equality, From, Plan, Size, ValuesFrom } from '../store.ts';

const ONE: Size = { rows: 1, bytes: 1 };

/** Resolves with the index that orders the rows of a plan with values of these paths. Rejects when there is none. */
type IndexFor = (equals: readonly string[], plan: Plan, signal: AbortSignal) => Promise<Index>;

/**
 * The rows of a collection that have these values: the part that a key opens. The plans of its readers lack the values.
 * They get them here and nowhere else, and `atEdge` lets no other plan through to the store. A class, because there may be
 * many parts.
 */
export class ScopedCollection implements Collection {
  readonly #rows: Collection;
  readonly #scope: Scope;
  readonly #indexFor: IndexFor;
  #changes: ChangeFeed | null | undefined;

  constructor(rows: Collection, scope: Scope, indexFor: IndexFor) {
    this.#rows = rows;
    this.#indexFor = indexFor;
    this.#scope = scope;
  }

  /** Made when somebody asks for it. */
  get changes(): ChangeFeed | undefined {
    if (this.#changes !== undefined) return this.#changes ?? undefined;
    const log = this.#rows.changes?.within?.(predicateOf(this.#scope));
    this.#changes = log ? new ScopedFeed(log, (plan) => this.#atEdge(this.#within(plan))) : null;
    return this.#changes ?? undefined;
  }

  async read(plan: Plan, from: From, size: Size, signal: AbortSignal): Promise<ReadBatch> {
    const mine = this.#atEdge(await this.#narrowed(plan, signal));
    if (!plan.isEmpty) return this.#rows.read(mine, from, size, signal);
    const batch = await this.#rows.read(mine, {}, ONE, signal);
    return { ...batch, rows: 0, length: 0, last: null, more: false };
  }

  async count(plan: Plan, mode: CountMode, signal: AbortSignal): Promise<Count> {
    if (plan.isEmpty) return { rows: 0, is: 'exact' };
    return this.#rows.count(this.#atEdge(await this.#narrowed(plan, signal)), mode, signal);
  }

  async split(plan: Plan, parts: number, signal: AbortSignal): Promise<readonly Bookmark[]> {
    return plan.isEmpty
      ? []
      : this.#rows.split(this.#atEdge(await this.#narrowed(plan, signal)), parts, signal);
  }

  async nextValue(index: Index, equals: readonly Equality[], ...rest: [ValuesFrom, AbortSignal]) {
    const mine = this.#atEdge(this.#within({ equals }));
    return this.#rows.nextValue(index, inOrderOf(index, mine.equals), ...rest);
  }

  describe(...call: Parameters<Collection['describe']>) {
    return this.#rows.describe(...call);
  }

  async #narrowed(plan: Plan, signal: AbortSignal): Promise<Plan> {
    const { equals, ...rest } = this.#within(plan);
    if (equals.length === 0) return plan;
    const paths = equals.map(({ path }) => path);
    const index = plan.index ?? (await this.#indexFor(paths, plan, signal));
    return { ...rest, index, equals: inOrderOf(index, equals) };
  }

  /** The one place where the values of a part are added to what is asked. */
  #within<P extends Pick<Plan, 'equals' | 'among'>>(plan: P): P & { readonly equals: readonly Equality[] } {
    return { ...plan, equals: [...this.#scope.where, ...(plan.equals ?? [])] };
  }

  #atEdge<P extends Pick<Plan, 'equals' | 'among'>>(plan: P): P {
    return atEdge(plan, this.#scope.where);
  }
}

/**
 * Passes a plan on that has the very values of the part, and no other one of their paths. A plan without them is a
 * mistake of this server, and fails.
 */
function atEdge<P extends Pick<Plan, 'equals' | 'among'>>(plan: P, where: readonly Equality[]): P {
  const { equals = [], among } = plan;
  const has = (own: Equality) =>
    equals.includes(own) &&
    equals.every((one) => one === own || one.path !== own.path) &&
    among?.path !== own.path;
  if (where.every(has)) return plan;
  throw new TypeError('a read outside the part that a key opens');
}
