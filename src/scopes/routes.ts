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
  /** Why the part's changes are not told, now or ever, in a sentence. Null: they are. */
  readonly changes: { readonly are: boolean; readonly refusal: string | null };
}

/** Makes the part of a resource. Rejects with ScopeFaults. */
export type MakeScope = (scope: Scope) => Promise<ScopedRoutes>;

/** What a key with scopes has in place of the routes of everybody. */
interface Own {
  readonly router: Router;
  readonly routes: ReadonlyMap<string, Route>;
  readonly lists: ReadonlyMap<string, List>;
  /** Why changes of a resource are not told. */
  readonly refusals: ReadonlyMap<string, string>;
}

/** A resource, and what is wrong with its part: for the operator, since it can name collections and indexes. */
export type Fault = readonly [resource: string, fault: string];

/** The most sets of rights of tokens whose routes are kept. */
const MOST_OF_TOKENS = 512;

/**
 * The routes of keys that open parts of resources. They are made when the keys are read, once for each set of rights. A
 * key with a scope never meets the routes of the whole resource: where its own are missing, there is nothing.
 */
export class Scopes {
  readonly #makers: ReadonlyMap<string, MakeScope>;
  /** By the hash of rights: of the keys that were read last, and of those before them. */
  #byRights: ReadonlyMap<string, Own> = new Map();
  #last: ReadonlyMap<string, Own> = new Map();
  /** By the hash of rights: of tokens, the least recently used first. */
  readonly #ofTokens = new Map<string, Own>();
  /** The routes that are being made: tokens with the same rights share them. */
  readonly #adding = new Map<string, Promise<readonly Fault[]>>();

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
        known ??
        (await this.#make(rights, (...fault) =>
          faults.push(`API_KEYS_FILE, key ${name}: ${fault.join(': ')}`),
        ));
      made.set(rights.hash, own);
    }
    if (faults.length > 0) return faults;
    this.#byRights = new Map([...this.#last, ...made]);
    this.#last = made;
    return faults;
  }

  /** Whether the routes of a token with these rights are there. */
  has({ scopes, hash }: Rights): boolean {
    if (scopes.size === 0) return true;
    const own = this.#ofTokens.get(hash);
    if (own) {
      this.#ofTokens.delete(hash);
      this.#ofTokens.set(hash, own);
    }
    return own !== undefined;
  }

  /** Makes the routes of a token with these rights. Resolves with the faults of the rights. */
  async add(rights: Rights): Promise<readonly Fault[]> {
    if (this.has(rights)) return [];
    const adding = this.#adding.get(rights.hash) ?? this.#add(rights);
    this.#adding.set(rights.hash, adding);
    return adding.finally(() => this.#adding.delete(rights.hash));
  }

  async #add(rights: Rights): Promise<readonly Fault[]> {
    const faults: Fault[] = [];
    const own =
      this.#byRights.get(rights.hash) ?? (await this.#make(rights, (...fault) => faults.push(fault)));
    if (faults.length > 0) return faults;
    this.#ofTokens.set(rights.hash, own);
    const [oldest] = this.#ofTokens.keys();
    if (oldest !== undefined && this.#ofTokens.size > MOST_OF_TOKENS) this.#ofTokens.delete(oldest);
    return faults;
  }

  #ownOf({ hash }: Rights): Own | undefined {
    return this.#byRights.get(hash) ?? this.#ofTokens.get(hash);
  }

  async #make({ scopes }: Rights, fault: (...fault: Fault) => void): Promise<Own> {
    const routes: Route[] = [];
    const lists = new Map<string, List>();
    const refusals = new Map<string, string>();
    for (const [resource, scope] of scopes) {
      try {
        const maker = this.#makers.get(resource);
        if (!maker) throw new ScopeFaults(['it cannot be opened in part']);
        const made = await maker(scope);
        routes.push(...(made.changes.are ? made.routes : made.routes.map(withoutChanges)));
        if (made.changes.refusal !== null) refusals.set(resource, made.changes.refusal);
        lists.set(resource, made.list);
      } catch (error) {
        if (!(error instanceof ScopeFaults)) throw error;
        for (const one of error.faults) fault(resource, one);
      }
    }
    const byName = new Map(routes.map((route) => [nameOf(route), route]));
    return { router: createRouter(routes), routes: byName, lists, refusals };
  }

  /** Why rights do not tell the changes of a resource. Undefined: they do. */
  refusalOf(rights: Rights, resource: string): string | undefined {
    return this.#ownOf(rights)?.refusals.get(resource);
  }

  /** What a client finds under a path: its own routes where its key opens a part of the resource. */
  find(request: Request, found: Found | null, client: Client): Found | null {
    if (!found || !client.key || !scopeOf(client.key.rights, found.resource)) return found;
    return this.#ownOf(client.key.rights)?.router.find(request) ?? null;
  }

  /** A route as a client has it. Null: it has none. */
  routeOf(route: Route, { key }: Pick<Client, 'key'>): Route | null {
    if (!key || !scopeOf(key.rights, route.resource ?? null)) return route;
    return this.#ownOf(key.rights)?.routes.get(nameOf(route)) ?? null;
  }

  /** The entry of a resource in the list that a client gets. Null: none. */
  listOf(list: List, { key }: Pick<Client, 'key'>): List | null {
    if (!key || !scopeOf(key.rights, list.name)) return list;
    return this.#ownOf(key.rights)?.lists.get(list.name) ?? null;
  }
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** Refuses the changes of a part whose store cannot tell them apart from those of the whole. */
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
