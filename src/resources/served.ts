import { setMaxListeners } from 'node:events';
import { AppError, storeUnavailable } from '../errors.ts';
import { nameFault, type Declared } from './declarations.ts';
import { listsOf, locate, locateAll, type Lists, type Located } from './locate.ts';
import {
  openResource,
  ResourceFaults,
  type ClosableResource,
  type OpenResource,
  type OpenResourcesOptions,
} from './open.ts';

/** How often a server looks for resources that came, changed or went. Milliseconds. */
const LOOK_MS = 5_000;

export interface ServedOptions extends OpenResourcesOptions {
  /** Reads what the operator declares now. Throws ResourceFaults. */
  readonly declared: () => readonly Declared[];
  /** Those that are always there. */
  readonly always: readonly OpenResource[];
}

/**
 * The resources of a server, which come and go while it runs: as the operator declares them, as collections match a
 * pattern or are dropped, and as the store itself keeps declarations.
 */
export class ServedResources {
  /** The resources that are served now. The same array until one comes, changes or goes. */
  now: readonly OpenResource[];
  /** Why the resources are not those that the settings declare now, one sentence each. */
  faults: readonly string[] = [];
  readonly #options: ServedOptions;
  readonly #always: readonly OpenResource[];
  readonly #stopping = new AbortController();
  /** The resources that are open, by what they were opened for. */
  #open = new Map<string, ClosableResource>();
  /** Where each declaration was found last. It is looked for there when it is gone. */
  readonly #found = new Map<string, Located>();
  /** Why collections that match a pattern are not served, by their places. Each reason is logged once. */
  readonly #left = new Map<string, string>();
  /** One look follows another. */
  #looking: Promise<boolean> = Promise.resolve(true);
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: ServedOptions) {
    this.#options = options;
    setMaxListeners(0, this.#stopping.signal); // one for each follower
    this.#always = options.always.map((one) => ({ ...one, stopping: this.#stopping.signal }));
    this.now = this.#always;
  }

  /** Opens all. Rejects with ResourceFaults, which lists everything that the operator has to mend. */
  static async open(options: ServedOptions): Promise<ServedResources> {
    const served = new ServedResources(options);
    await served.#look(true);
    return served;
  }

  /** Looks again every few seconds from now on. Calls `onChange` after resources came, changed or went. */
  follow(onChange: () => void): void {
    this.#timer = setInterval(() => {
      const before = this.now;
      void this.reload().then(() => this.now !== before && onChange());
    }, LOOK_MS).unref();
  }

  /**
   * Looks now. Resolves with whether the resources are those that are declared now. Never rejects: what is at fault
   * changes nothing, and the log says why.
   */
  reload(): Promise<boolean> {
    return (this.#looking = this.#looking.then(() => this.#lookAgain()));
  }

  /** Ends all followers, because the server stops. */
  async stop(reason: Error): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort(reason);
    for (const one of this.#open.values()) one.stop(reason);
    await this.#looking;
  }

  async #lookAgain(): Promise<boolean> {
    try {
      await this.#look(false);
      this.faults = [];
      return true;
    } catch (error) {
      if (error instanceof AppError) return false; // the store is away, and /readyz says so
      const faults = error instanceof ResourceFaults ? error.faults : [String(error)];
      const said = 'The resources have faults, so those of before stay:';
      if (String(faults) !== String(this.faults)) this.#options.log.error({ err: error, faults }, said);
      this.faults = faults.map((fault) => `${said} ${fault}`);
      return false;
    }
  }

  /** `isFirst`: also while the store is away. */
  async #look(isFirst: boolean): Promise<void> {
    const located = await this.#locate(isFirst);
    const opened = await Promise.all(
      located.map(
        async (one) => [one, this.#open.get(keyOf(one)) ?? (await openResource(one, this.#options))] as const,
      ),
    );
    const next = new Map<string, ClosableResource>();
    const faults: string[] = [];
    for (const [one, result] of opened)
      if (typeof result !== 'string') next.set(keyOf(one), result);
      else if (one.isOfPattern) this.#logOnce(one, result);
      else faults.push(result);
    if (faults.length > 0) {
      for (const [key, one] of next) if (!this.#open.has(key)) one.close();
      throw new ResourceFaults(faults);
    }
    this.#replace(next);
  }

  /** What is to be served. Throws ResourceFaults. Rejects with `store-unavailable` unless it is the first look. */
  async #locate(isFirst: boolean): Promise<readonly Located[]> {
    const { store } = this.#options;
    const declared = this.#options.declared();
    const lists = listsOf(store);
    if (!isFirst && !store.keepsDeclarations && declared.length > 0 && !(await lists()))
      throw storeUnavailable(new Error('the collections cannot be listed'));
    const faults: string[] = [];
    const located: Located[] = [];
    for (const one of declared) {
      if (one.pattern) located.push(...this.#fitting(await locateAll(one.pattern, one, lists), located));
      else {
        const found = await this.#find(one, lists);
        if (typeof found === 'string') faults.push(found);
        else if (found) located.push(found);
      }
    }
    const named = new Set(declared.map(({ collection }) => collection));
    for (const one of await store.declared())
      if (!named.has(one.collection))
        located.push({ ...one, indexes: [], place: one.name, database: one.database, isThere: true });
    faults.push(...located.flatMap((one, n) => nameFaultOf(one, located.slice(0, n)) ?? []));
    if (faults.length > 0) throw new ResourceFaults([...new Set(faults)]);
    return located;
  }

  /** Finds a collection that is declared by its name. Undefined: it was served, and is gone. */
  async #find(declared: Declared, lists: Lists): Promise<Located | string | undefined> {
    const key = JSON.stringify(declared);
    const found = await locate(declared, lists);
    if (this.#options.store.keepsDeclarations || typeof found === 'string' || found.isThere === null)
      return found;
    if (found.isThere) this.#found.set(key, found);
    return found.isThere || !this.#found.has(key) ? found : undefined;
  }

  /** Leaves out the collections that match a pattern, but cannot have their name. */
  #fitting(found: readonly Located[], before: readonly Located[]): readonly Located[] {
    return found.filter((one) => {
      const fault = nameFaultOf(one, before);
      if (fault !== undefined) this.#logOnce(one, fault);
      return fault === undefined;
    });
  }

  #logOnce(one: Located, fault: string): void {
    const key = keyOf(one);
    if (this.#left.get(key) !== fault)
      this.#options.log.warn({ reason: fault }, `/${one.name} is not served`);
    this.#left.set(key, fault);
  }

  #replace(next: Map<string, ClosableResource>): void {
    const gone = [...this.#open].filter(([key]) => !next.has(key));
    if (gone.length === 0 && next.size === this.#open.size) return;
    this.#open = next;
    this.now = [...next.values(), ...this.#always];
    for (const [, one] of gone) {
      one.close();
      this.#options.log.info({ resource: one.resource.name }, `no longer serving /${one.resource.name}`);
    }
  }
}

/** All that a resource is opened for. */
function keyOf({
  name,
  database,
  collection,
  hide,
  show,
  indexes,
  fields,
  isUnsure = false,
}: Located): string {
  return JSON.stringify([name, database, collection, hide, show, indexes, fields, isUnsure]);
}

function nameFaultOf({ name, place }: Located, before: readonly Located[]): string | undefined {
  const fault = nameFault(name);
  if (fault !== undefined) return `${place}: ${fault}`;
  const isTwice = before.some((other) => other.name === name);
  return isTwice ? `${place}: another resource has the name ${name}, too` : undefined;
}
