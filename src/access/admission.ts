import { AppError } from '../errors.ts';
import { KEY_PREFIX, type Limiter, type Taken } from './limiter.ts';
import { limitHeaders, tooManyRequests, type Policy } from './policy.ts';
import type { Backlog } from './backlog.ts';
import type { StreamSlots } from './stream-slots.ts';
import type { ClientReader } from './client.ts';
import type { Reply, Request } from '../engine/edge.ts';
import type { Authenticate } from './keys.ts';

/**
 * Who may send a request. `open`: everybody. `probe`: everybody, at any rate. `keyed`: clients with a valid key,
 * where the server requires keys.
 */
export type Access = 'open' | 'probe' | 'keyed';

/**
 * The cost of a request, which decides which limits apply to it.
 *
 * - `watch`: answered even when the server is overloaded, because its answer matters most then.
 * - `page`: counts as work in progress until it is answered. The overload guard counts such work.
 * - `write`: has a body. Its client determines when the body arrives, so it does not count as work in progress.
 * - `stream`, `download`: holds one of the client's stream slots until it ends.
 */
export type Cost = 'watch' | 'page' | 'write' | 'stream' | 'download';

/** The access and the cost that a route declares. */
export interface Demand {
  readonly access: Access;
  readonly cost: Cost;
}

/**
 * The client that sent a request: `KEY_PREFIX` plus the key's name, or a network address. `hasKey` tells whether this
 * server requires keys.
 */
export interface Client {
  readonly name: string;
  readonly hasKey: boolean;
}

/** The decision about a request, made before any other work is done for it. */
export interface Admission {
  /** Headers of every answer, errors included: RateLimit and RateLimit-Policy, unless RATE_LIMIT is off. */
  readonly headers: Reply['headers'];
  readonly client: Client;
  /** Why the request is refused; null when it is admitted. */
  readonly refused: AppError | null;
  /**
   * To be called once, when the request is there with its content. A QUERY counts as work in progress from then on,
   * because its client determines when that is. A GET counts from the start.
   */
  readonly arrived: () => void;
  /** To be called once, when there is an answer. Until then the request counts as work in progress. */
  readonly done: () => void;
}

export interface AdmissionOptions {
  /** Identifies a client without a key. */
  readonly readClient: ClientReader;
  /** null: no key is required. */
  readonly authenticate: Authenticate | null;
  /** null: RATE_LIMIT is off. */
  readonly rate: { readonly policy: Policy; readonly limiter: Limiter } | null;
  readonly slots: StreamSlots;
  /** Why requests are refused now; null: they are admitted. */
  readonly overload?: () => AppError | null;
  /** Counts the work that is admitted. */
  readonly backlog?: Pick<Backlog, 'began' | 'done'>;
}

interface Identity {
  readonly name: string;
  readonly refused: AppError | null;
}

/** The demand of a request without a route: no resource has its path, or the resource does not take its method. */
const UNROUTED: Demand = { access: 'keyed', cost: 'page' };
const NOTHING = () => undefined;

/** Decides which requests are admitted: by key, by rate, and by open streams. Each request is authenticated once. */
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
   * Counts the request for its client. A client without a valid key is counted by its address, so that keys cannot be
   * guessed faster than RATE_LIMIT, and no client uses up the requests of another. `demand` is that of the route;
   * null: there is no route. Never throws or rejects.
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

  /**
   * Streams have a limit of their own. The duration of a request with a body depends on its client, so it is not
   * counted.
   */
  #admission(
    { method }: Request,
    { cost }: Demand,
    headers: Reply['headers'],
    { name, refused }: Identity,
  ): Admission {
    const client = { name, hasKey: this.#options.authenticate !== null };
    const idle = { client, headers, refused, arrived: NOTHING, done: NOTHING };
    if (refused !== null || cost === 'stream') return idle;
    if (method === 'QUERY') return { ...idle, ...this.#countedLater() };
    if (method !== 'GET' && method !== 'HEAD') return idle;
    this.#options.backlog?.began();
    return { ...idle, done: this.#done };
  }

  #countedLater(): Pick<Admission, 'arrived' | 'done'> {
    let isCounted = false;
    const arrived = () => {
      isCounted = true;
      this.#options.backlog?.began();
    };
    const done = () => {
      if (isCounted) this.#done();
    };
    return { arrived, done };
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

/** Browsers send a preflight without credentials (Fetch, 4.8). */
function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
