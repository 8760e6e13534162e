import { AppError, Faults } from '../base/errors.ts';
import { nameFault, type CollectionPattern, type ResourceDeclaration } from './declarations.ts';
import { leftOutOf, listsOf, locate, locateAll, type Lists, type LocatedDeclaration } from './locate.ts';
import type { CollectionEntry } from '../store/store.ts';
import { openResource, type ClosableResource, type OpenResource, type OpenResourcesOptions } from './open.ts';

/** How often a server looks for resources that came, changed or went. Milliseconds. */
const LOOK_MS = 5_000;

const NOT_CHANGED = 'The resources have faults, so those of before stay';

export interface ServedOptions extends OpenResourcesOptions {
  /** Reads what the operator declares now. Throws Faults. */
  readonly declared: () => readonly ResourceDeclaration[];
  /** Finds what needs no setting: the resources that the server declares by itself, and those that the store keeps. */
  readonly kept: () => Promise<readonly LocatedDeclaration[]>;
  /** Names that keys use for something else, each with what that is. */
  readonly inKeys?: ReadonlyMap<string, string>;
}

/** The resources of a server, which come and go as settings, collections and the store's own declarations change. */
export class ServedResources {
  /** The resources that are served now. The same array until one comes, changes or goes. */
  now: readonly OpenResource[] = [];
  #faults: readonly string[] = [];
  readonly #options: ServedOptions;
  readonly #stopping = new AbortController();
  /** The resources that are open, by what they were opened for. */
  #open = new Map<string, ClosableResource>();
  /** The declarations by name whose collections were there once. */
  readonly #found = new Set<string>();
  /** Why collections that match a pattern are not served, by their places. Each reason is logged once. */
  readonly #left = new Map<string, string>();
  readonly #idle = new Set<string>();
  /** The patterns whose collections are not known yet, because the store was away. */
  #unsure: readonly CollectionPattern[] = [];
  /** One look follows another. */
  #looking: Promise<boolean> = Promise.resolve(true);
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: ServedOptions) {
    this.#options = options;
  }

  /** Opens all. Rejects with Faults, which lists everything that the operator has to mend. */
  static async open(options: ServedOptions): Promise<ServedResources> {
    const served = new ServedResources(options);
    await served.#look(true);
    return served;
  }

  /** Why the resources are not those that the settings declare now, one sentence each. */
  get faults(): readonly string[] {
    return this.#faults.map((fault) => `${NOT_CHANGED}: ${fault}`);
  }

  /** Whether there may be a resource of this name that is not known yet, because the store was away. */
  mayCome(name: string): boolean {
    return this.#nameFault(name) === undefined && this.#unsure.some(({ matches }) => matches(name));
  }

  /** Why no resource of this server can have a name. Undefined: one can. */
  #nameFault(name: string): string | undefined {
    const other = this.#options.inKeys?.get(name);
    if (other === undefined) return nameFault(name);
    return `the name ${name} means ${other} in keys`;
  }

  /** Looks again every few seconds from now on. Calls `onChange` after resources came, changed or went. */
  follow(onChange: () => void): void {
    this.#timer = setTimeout(() => {
      const before = this.now;
      void this.reload().then(() => {
        if (this.now !== before) onChange();
        if (!this.#stopping.signal.aborted) this.follow(onChange);
      });
    }, LOOK_MS).unref();
  }

  /** Resolves with whether the resources are as declared now. Never rejects: a fault changes nothing and is logged. */
  reload(): Promise<boolean> {
    return (this.#looking = this.#looking.then(() => this.#lookAgain()));
  }

  /** Ends all followers, because the server stops. A look that is under way changes nothing any more. */
  stop(reason: Error): void {
    clearTimeout(this.#timer);
    this.#stopping.abort(reason);
    for (const one of this.#open.values()) one.stop(reason);
  }

  async #lookAgain(): Promise<boolean> {
    try {
      await this.#look(false);
      this.#faults = [];
      return true;
    } catch (error) {
      if (error instanceof AppError || this.#stopping.signal.aborted) return false; // /readyz says it, if the store is away
      const faults = error instanceof Faults ? error.faults : ['the log of the server says why'];
      if (String(faults) !== String(this.#faults))
        this.#options.log.error({ err: error, faults }, NOT_CHANGED);
      this.#faults = faults;
      return false;
    }
  }

  /** `isFirst`: also while the store is away. */
  async #look(isFirst: boolean): Promise<void> {
    const located = await this.#locate(isFirst);
    const fresh: ClosableResource[] = [];
    try {
      const next = await this.#openAll(located, fresh);
      this.#stopping.signal.throwIfAborted();
      this.#replace(next);
    } catch (error) {
      for (const one of fresh) one.close();
      throw error;
    }
  }

  /** Opens those that are not open yet, which it adds to `fresh`, also when it rejects. */
  async #openAll(
    located: readonly LocatedDeclaration[],
    fresh: ClosableResource[],
  ): Promise<Map<string, ClosableResource>> {
    const faults: string[] = [];
    const open = async (one: LocatedDeclaration): Promise<readonly [string, ClosableResource][]> => {
      const key = keyOf(one);
      const known = this.#open.get(key);
      if (known) return [[key, known]];
      const result = await openResource(one, this.#options);
      if (typeof result !== 'string') {
        fresh.push(result);
        return [[key, result]];
      }
      if (one.isOfPattern) this.#logOnce(one, result);
      else faults.push(result);
      return [];
    };
    const opened = await Promise.allSettled(located.map(open));
    const failed = opened.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    if (faults.length > 0) throw new Faults(faults);
    return new Map(opened.flatMap((one) => (one.status === 'fulfilled' ? one.value : [])));
  }

  /** What is declared by name, by pattern and by the store. Rejects with Faults, later also `store-unavailable`. */
  async #locate(isFirst: boolean): Promise<readonly LocatedDeclaration[]> {
    const kept = await this.#options.kept();
    const declared = this.#options.declared();
    const lists = listsOf(this.#options.store, isFirst);
    const faults: string[] = [];
    const located: LocatedDeclaration[] = [];
    const own = kept.filter((one) => one.own);
    const names = new Set(own.map(({ name }) => name));
    const add = (one: LocatedDeclaration, refuse: (fault: string) => void): void => {
      const fault = names.has(one.name)
        ? `another resource has the name ${one.name}, too`
        : this.#nameFault(one.name);
      if (fault !== undefined) refuse(`${one.place}: ${fault}; RESOURCES_FILE can give another name`);
      else located.push(one);
      names.add(one.name);
    };
    const refuse = (fault: string) => void faults.push(fault);
    for (const one of declared.filter(({ pattern }) => !pattern)) {
      const found = await this.#find(one, lists);
      if (typeof found === 'string') refuse(found);
      else if (found) add(found, refuse);
    }
    const named = new Set(located.map(placeOf));
    const unsure: CollectionPattern[] = [];
    for (const one of declared) {
      if (!one.pattern) continue;
      const all = await locateAll(one.pattern, one, lists);
      for (const { collection, reason } of await leftOutOf(one.pattern, lists))
        this.#logLeftOut(`${one.place} ${collection}`, collection, reason);
      if (all) this.#warnOfIdle(one.pattern, (await lists(one.pattern.database)) ?? []);
      else unsure.push(one.pattern);
      for (const found of all ?? [])
        if (!named.has(placeOf(found)) && !own.some((one) => isOneCollection(one, found)))
          add(found, (fault) => this.#logOnce(found, fault));
    }
    const collections = new Set(declared.map(({ collection }) => collection));
    for (const one of kept) if (!one.own && !collections.has(one.collection)) add(one, refuse);
    if (faults.length > 0) throw new Faults([...new Set(faults)]);
    this.#unsure = unsure;
    return [...located, ...own];
  }

  /** Finds a collection that is declared by its name. Undefined: it was served, and is gone. */
  async #find(declared: ResourceDeclaration, lists: Lists): Promise<LocatedDeclaration | string | undefined> {
    const key = JSON.stringify(declared);
    const found = await locate(declared, lists);
    if (typeof found === 'string' || found.isThere === null) return found;
    if (found.isThere) this.#found.add(key);
    return found.isThere || !this.#found.has(key) ? found : undefined;
  }

  /** An entry that leaves nothing out may be misspelt. Each is logged once. */
  #warnOfIdle({ idle }: CollectionPattern, found: readonly CollectionEntry[]): void {
    for (const entry of idle(found.map(({ collection }) => collection))) {
      if (!this.#idle.has(entry))
        this.#options.log.warn({ entry }, 'EXPOSE: an entry leaves out no collection');
      this.#idle.add(entry);
    }
  }

  #logOnce(one: LocatedDeclaration, fault: string): void {
    this.#logLeftOut(keyOf(one), one.name, fault);
  }

  #logLeftOut(key: string, name: string, reason: string): void {
    if (this.#left.get(key) !== reason) this.#options.log.warn({ reason }, `/${name} is not served`);
    this.#left.set(key, reason);
  }

  #replace(next: Map<string, ClosableResource>): void {
    const gone = [...this.#open].filter(([key]) => !next.has(key));
    if (gone.length === 0 && next.size === this.#open.size) return;
    this.#open = next;
    this.now = [...next.values()];
    for (const [, one] of gone) {
      one.close();
      this.#options.log.info({ resource: one.resource.name }, `no longer serving /${one.resource.name}`);
    }
  }
}

/** All that a resource is opened for. */
function keyOf(located: LocatedDeclaration): string {
  const { name, database, collection, hide, show, indexes, fields, editions, public: isPublic } = located;
  return JSON.stringify([name, database, collection, hide, show, indexes, fields, editions, isPublic]);
}

/** Whether a pattern has found the collection of a resource of the server itself. */
function isOneCollection(own: LocatedDeclaration, found: LocatedDeclaration): boolean {
  return found.database === undefined && found.collection === own.collection;
}

/** Where a collection is: one that is declared by its name does not match a pattern, too. */
function placeOf({ database, ownDatabase, collection }: LocatedDeclaration): string {
  return JSON.stringify([database ?? ownDatabase, collection]);
}
