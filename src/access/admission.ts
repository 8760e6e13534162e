import { AppError } from '../errors.ts';
import { KEY_PREFIX, type Limiter, type Taken } from './limiter.ts';
import { limitHeaders, tooManyRequests, type Policy } from './policy.ts';
import type { Backlog } from './backlog.ts';
import type { StreamSlots } from './stream-slots.ts';
import type { ClientReader } from './client.ts';
import type { Reply, Request } from '../engine/edge.ts';
import type { Authenticate } from './keys.ts';

/** Who may ask: everybody, everybody and however often, or who has a key where the server wants keys. */
export type Access = 'open' | 'probe' | 'keyed';

/**
 * What a request costs, which decides what bounds it.
 *
 * - `watch`: answered also when the server has too much to do: what it says then matters most.
 * - `page`: work under way until it is answered, which the guard against overload counts.
 * - `write`: it has a body, whose arrival is its client's matter: not counted as work under way.
 * - `stream`, `download`: holds one of the client's stream slots until it ends.
 */
export type Cost = 'watch' | 'page' | 'write' | 'stream' | 'download';

/** What a route declares of who may ask and what it costs. */
export interface Demand {
  readonly access: Access;
  readonly cost: Cost;
}

/** Who asks: a key's name after KEY_PREFIX, or an address; and whether a key is needed to ask at all. */
export interface Client {
  readonly name: string;
  readonly hasKey: boolean;
}

/** What is decided about a request before anything is done for it. */
export interface Admission {
  /** For every answer, also errors: RateLimit and RateLimit-Policy, unless RATE_LIMIT is off. */
  readonly headers: Reply['headers'];
  readonly client: Client;
  /** Why the request is not let in; null when it is. */
  readonly refused: AppError | null;
  /** To be called once, when there is an answer: until then the request is work under way. */
  readonly done: () => void;
}

export interface AdmissionOptions {
  /** Who a client without a key is. */
  readonly readClient: ClientReader;
  /** null: nobody needs a key. */
  readonly authenticate: Authenticate | null;
  /** null: RATE_LIMIT is off. */
  readonly rate: { readonly policy: Policy; readonly limiter: Limiter } | null;
  readonly slots: StreamSlots;
  /** Why nobody is let in now; null: everybody may. */
  readonly overload?: () => AppError | null;
  /** Is told of the work that is let in. */
  readonly backlog?: Pick<Backlog, 'began' | 'done'>;
}

interface Identity {
  readonly name: string;
  readonly refused: AppError | null;
}

/** What has no route: a path that no resource has, a method that a resource does not take. */
const UNROUTED: Demand = { access: 'keyed', cost: 'page' };
const NOTHING = () => undefined;

/** Decides who is let in: by key, by rate, and by open streams. Each request is authenticated once. */
export class Admissions {
  readonly #options: AdmissionOptions;
  readonly #headers: (taken: Taken) => Reply['headers'];
  readonly #done: () => void;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#done = () => options.backlog?.done();
    this.#headers = options.rate === null ? () => ({}) : limitHeaders(options.rate.policy);
  }

  /**
   * Counts the request for its client. Whoever has no valid key is counted by address, so that keys cannot be guessed
   * faster than RATE_LIMIT, and nobody uses up another's requests. `demand` is the route's; null: there is none. Never
   * throws or rejects.
   */
  admit(request: Request, demand: Demand | null): Admission | Promise<Admission> {
    const { rate } = this.#options;
    const asked = demand ?? UNROUTED;
    const identity = this.#refuseOverload(asked, this.#identify(request, asked));
    request.notes.client = identity.name;
    if (rate === null) return this.#admission(request, asked, {}, identity);
    const taken = rate.limiter.take(identity.name);
    if (!(taken instanceof Promise)) return this.#decide(request, asked, identity, rate.policy, taken);
    return taken.then((late) => this.#decide(request, asked, identity, rate.policy, late));
  }

  /** See StreamSlots.acquire. */
  acquire({ name }: Client): () => void {
    return this.#options.slots.acquire(name);
  }

  #decide(
    request: Request,
    asked: Demand,
    { name, refused }: Identity,
    policy: Policy,
    taken: Taken,
  ): Admission {
    const within = taken.allowed || asked.access === 'probe';
    const told = { name, refused: within ? refused : tooManyRequests(policy, taken) };
    return this.#admission(request, asked, this.#headers(taken), told);
  }

  /** Streams have a bound of their own, and how long a request with a body takes is its client's matter, too. */
  #admission(
    { method }: Request,
    { cost }: Demand,
    headers: Reply['headers'],
    { name, refused }: Identity,
  ): Admission {
    const client = { name, hasKey: this.#options.authenticate !== null };
    const isCounted = refused === null && cost !== 'stream' && (method === 'GET' || method === 'HEAD');
    if (!isCounted) return { client, headers, refused, done: NOTHING };
    this.#options.backlog?.began();
    return { client, headers, refused, done: this.#done };
  }

  #refuseOverload({ cost }: Demand, { name, refused }: Identity): Identity {
    const overload = cost === 'watch' ? null : (this.#options.overload?.() ?? null);
    return { name, refused: overload ?? refused };
  }

  #identify(request: Request, { access }: Demand): Identity {
    const { authenticate, readClient } = this.#options;
    if (authenticate === null || access !== 'keyed' || isPreflight(request))
      return { name: readClient(request), refused: null };
    try {
      return { name: KEY_PREFIX + authenticate(request.headers.authorization), refused: null };
    } catch (error) {
      if (error instanceof AppError) return { name: readClient(request), refused: error };
      throw error;
    }
  }
}

/** Browsers send it without credentials (Fetch, 4.8). */
function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
