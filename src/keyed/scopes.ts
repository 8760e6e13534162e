import type { Client } from '../access/admission.ts';
import type { Key } from '../access/keys.ts';
import { scopeOf, type Rights, type Scope } from '../access/rights.ts';
import { ScopeFaults } from '../access/scope-faults.ts';
import { AppError } from '../errors.ts';
import type { Request } from '../engine/edge.ts';
import type { Route } from '../http/route.ts';
import { createRouter, type Found, type Router } from '../http/router.ts';
import type { List } from '../resources/list.ts';

/** The part of one resource that a key opens, as its routes and its entry in the list of resources. */
export interface ScopedRoutes {
  readonly routes: readonly Route[];
  readonly list: List;
}

/** Makes the part of a resource. Rejects with ScopeFaults. */
export type MakeScope = (scope: Scope) => Promise<ScopedRoutes>;

/** What a key with scopes has in place of the routes of everybody. */
interface Own {
  readonly router: Router;
  readonly routes: ReadonlyMap<string, Route>;
  readonly lists: ReadonlyMap<string, List>;
}

/**
 * The routes of keys that open parts of resources. They are made when the keys are read, once for each set of rights. A
 * key with a scope never meets the routes of the whole resource: where its own are missing, there is nothing.
 */
export class Scopes {
  readonly #makers: ReadonlyMap<string, MakeScope>;
  /** By the hash of rights: of the keys that were read last, and of those before them. */
  #byRights: ReadonlyMap<string, Own> = new Map();
  #last: ReadonlyMap<string, Own> = new Map();

  /** `makers`: by the names of the resources. */
  constructor(makers: ReadonlyMap<string, MakeScope>) {
    this.#makers = makers;
  }

  /**
   * Makes the routes of these keys. Resolves with the faults of keys, one sentence each. The routes of the keys before
   * remain until the next call, because their requests may be under way.
   */
  async prepare(keys: readonly Key[]): Promise<readonly string[]> {
    const faults: string[] = [];
    const made = new Map<string, Own>();
    for (const { name, rights } of keys) {
      if (rights.scopes.size === 0 || made.has(rights.hash)) continue;
      const known = this.#byRights.get(rights.hash);
      const own =
        known ?? (await this.#make(rights, (fault) => faults.push(`API_KEYS_FILE, key ${name}: ${fault}`)));
      made.set(rights.hash, own);
    }
    if (faults.length > 0) return faults;
    this.#byRights = new Map([...this.#last, ...made]);
    this.#last = made;
    return faults;
  }

  async #make({ scopes }: Rights, fault: (text: string) => void): Promise<Own> {
    const routes: Route[] = [];
    const lists = new Map<string, List>();
    for (const [resource, scope] of scopes) {
      try {
        const maker = this.#makers.get(resource);
        if (!maker) throw new ScopeFaults(['it cannot be opened in part']);
        const made = await maker(scope);
        routes.push(...made.routes.map(withoutChanges));
        lists.set(resource, made.list);
      } catch (error) {
        if (!(error instanceof ScopeFaults)) throw error;
        for (const one of error.faults) fault(`${resource}: ${one}`);
      }
    }
    const byName = new Map(routes.map((route) => [nameOf(route), route]));
    return { router: createRouter(routes), routes: byName, lists };
  }

  /** What a client finds under a path: its own routes where its key opens a part of the resource. */
  find(request: Request, found: Found | null, client: Client): Found | null {
    if (!found || !client.key || !scopeOf(client.key.rights, found.resource)) return found;
    return this.#byRights.get(client.key.rights.hash)?.router.find(request) ?? null;
  }

  /** A route as a client has it. Null: it has none. */
  routeOf(route: Route, { key }: Pick<Client, 'key'>): Route | null {
    if (!key || !scopeOf(key.rights, route.resource ?? null)) return route;
    return this.#byRights.get(key.rights.hash)?.routes.get(nameOf(route)) ?? null;
  }

  /** The entry of a resource in the list that a client gets. Null: none. */
  listOf(list: List, { key }: Pick<Client, 'key'>): List | null {
    if (!key || !scopeOf(key.rights, list.name)) return list;
    return this.#byRights.get(key.rights.hash)?.lists.get(list.name) ?? null;
  }
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** Changes of a store are of all rows and all fields, so a key with a scope gets none. */
function withoutChanges(route: Route): Route {
  const { resource = '', alsoNeeds } = route;
  const refuse = (): never => {
    throw new AppError(
      'forbidden',
      `The key opens a part of ${resource}, and changes are told of whole resources only: it cannot have the right changes.`,
    );
  };
  if (route.right === 'changes') return { ...route, handler: refuse };
  if (!alsoNeeds) return route;
  return { ...route, alsoNeeds: (query) => (alsoNeeds(query) === 'changes' ? refuse() : alsoNeeds(query)) };
}
