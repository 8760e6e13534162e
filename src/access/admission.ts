import { AppError } from '../base/errors.ts';
import { KEY_PREFIX, TOKEN_PREFIX, type Limiter } from './limiter.ts';
import type { HostCheck } from './hosts.ts';
import { limitHeaders, tooManyRequests, type Policy } from './policy.ts';
import type { OverloadGuard } from './overload.ts';
import type { StreamSlots } from './stream-slots.ts';
import type { ClientReader } from './client.ts';
import type { Reply, Request } from '../engine/edge.ts';
import type { Authenticate, Key, Keyring } from './keys.ts';
import type { Right } from './rights.ts';

/** `open`: everybody. `probe`: everybody, at any rate. `keyed`: with a valid key, where the server requires keys. */
type Access = 'open' | 'probe' | 'keyed';

/**
 * The cost of a request, which decides which limits apply to it.
 *
 * - `watch`: answered even when the server is overloaded, because its answer matters most then.
 * - `page`: counts as work in progress until it is answered. The overload guard counts such work.
 * - `write`: has a body. Its client determines when the body arrives, so it does not count as work in progress.
 * - `stream`, `download`: holds one of the client's stream slots until it ends.
 */
type Cost = 'watch' | 'page' | 'write' | 'stream' | 'download';

/** What a route declares. A keyed route without a right is open only to keys without limits. */
export interface Demand {
  readonly access: Access;
  readonly cost: Cost;
  readonly right?: Right;
}

/**
 * The client that sent a request: `KEY_PREFIX` plus the key's name, `TOKEN_PREFIX` plus the subject of a token, or a
 * network address. `hasKey`: whether this server requires keys.
 */
export interface Client {
  readonly name: string;
  readonly hasKey: boolean;
  /** The key that it sent. null: none, or the route asks for none, or the server requires none. */
  readonly key: Key | null;
  /** Whose its exports are: the name, for a key with limits also its rights, and for a token also its issuer. */
  readonly owner: string;
}

/** The decision about a request, made before any other work is done for it. */
export interface Admission {
  /** Headers of every answer, errors included: RateLimit and RateLimit-Policy, unless RATE_LIMIT is off. */
  readonly headers: Reply['headers'];
  readonly client: Client;
  /** Why the request is refused; null when it is admitted. */
  readonly refused: AppError | null;
  /** To be called once, when there is an answer. Until then the request counts as work in progress. */
  readonly done: () => void;
}

interface AdmissionOptions {
  /** Identifies a client without a key. */
  readonly readClient: ClientReader;
  /** null: no key is required. */
  readonly authenticate: Authenticate | null;
  /** Without keys, the way in is the name under which the server was asked. Missing: any. */
  readonly checkHost?: HostCheck;
  /** Whether an answer that was begun may go on. Missing: keys never change. */
  readonly allows?: Keyring['allows'];
  /** null: RATE_LIMIT is off, and no key can have a limit of its own. `policy` gives null: RATE_LIMIT is off. */
  readonly rate: { readonly policy: () => Policy | null; readonly limiter: Limiter } | null;
  readonly slots: StreamSlots;
  /** Missing: there is never too much work. */
  readonly guard?: OverloadGuard;
}

interface Identity {
  readonly name: string;
  readonly key: Key | null;
  readonly refused: AppError | null;
}

/** The demand of a request without a route: no resource has its path, or the resource does not take its method. */
const UNROUTED: Demand = { access: 'keyed', cost: 'page' };
const NOTHING = () => undefined;

/** Decides which requests are admitted: by key, by rate, and by open streams. Each request is authenticated once. */
export class Admissions {
  readonly #options: AdmissionOptions;
  readonly #done = (): void => this.#options.guard?.backlog.done();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /**
   * Counts the request for its client. A client without a valid key is counted by its address, so that keys cannot be
   * guessed faster than RATE_LIMIT, and no client uses up the requests of another. `demand` is that of the route;
   * null: there is no route. Never throws or rejects.
   */
  admit(request: Request, demand: Demand | null): Admission | Promise<Admission> {
    const asked = demand ?? UNROUTED;
    return after(this.#identify(request, asked), (known) => this.#count(request, asked, known));
  }

  /** See StreamSlots.acquire. */
  acquire({ name, key }: Client): () => void {
    return this.#options.slots.acquire(name, key?.streams);
  }

  /** Waits while a request takes a stream slot in place of counting as work in progress. Rejects as `acquire` throws. */
  async idle(client: Client, until: () => Promise<void>): Promise<void> {
    const release = this.acquire(client);
    const resume = this.#options.guard?.backlog.pause();
    try {
      await until();
    } finally {
      resume?.();
      release();
    }
  }

  /** Whether an answer that a client's key began may go on: see Keyring.allows. */
  mayGoOn(
    { key }: Client,
    { right, resource = null }: Pick<Demand, 'right'> & { readonly resource?: string | null },
  ): boolean {
    return key === null || this.#options.allows?.(key, right, resource) !== false;
  }

  /** Other routes are answered without a key, but a valid key may decide on the answer: see openapi/document-routes.ts. */
  #identify(request: Request, { access }: Demand): Identity | Promise<Identity> {
    const { authenticate, readClient, checkHost } = this.#options;
    const { authorization } = request.headers;
    if (authenticate === null)
      return { name: readClient(request), key: null, refused: checkHost?.(request.headers.host) ?? null };
    if ((access !== 'keyed' && authorization === undefined) || isPreflight(request))
      return { name: readClient(request), key: null, refused: null };
    try {
      const key = authenticate(authorization);
      if (!(key instanceof Promise)) return identified(key);
      return key.then(identified, (error: unknown) => this.#unidentified(request, access, error));
    } catch (error) {
      return this.#unidentified(request, access, error);
    }
  }

  #unidentified(request: Request, access: Access, error: unknown): Identity {
    if (!(error instanceof AppError)) throw error;
    return { name: this.#options.readClient(request), key: null, refused: access === 'keyed' ? error : null };
  }

  #count(request: Request, asked: Demand, known: Identity): Admission | Promise<Admission> {
    const { rate, guard } = this.#options;
    const { name, key } = known;
    const overloaded = asked.cost === 'watch' ? null : (guard?.refusal() ?? null);
    const refused = overloaded ?? known.refused;
    request.notes.client = name;
    request.notes.rights = key?.rights.hash ?? '';
    const policy = key?.rate ?? rate?.policy() ?? null;
    if (rate === null || policy === null) return this.#decided(request, asked, {}, { name, key, refused });
    return after(rate.limiter.take(name, policy), (taken) => {
      const isWithin = taken.allowed || asked.access === 'probe';
      const tooMany = isWithin ? null : tooManyRequests(policy, taken, key?.rate !== undefined);
      const headers = limitHeaders(policy, taken);
      return this.#decided(request, asked, headers, { name, key, refused: tooMany ?? refused });
    });
  }

  /** Streams have a limit of their own. A body takes as long as its client wants, so it is not counted. */
  #decided(
    { method }: Request,
    { cost }: Demand,
    headers: Reply['headers'],
    { name, key, refused }: Identity,
  ): Admission {
    const owner = key === null ? name : ownerOf(name, key);
    const client = { name, hasKey: this.#options.authenticate !== null, key, owner };
    const idle = { client, headers, refused, done: NOTHING };
    if (refused !== null || cost === 'stream') return idle;
    if (method !== 'GET' && method !== 'HEAD') return idle;
    this.#options.guard?.backlog.began();
    return { ...idle, done: this.#done };
  }
}

/** Calls `next` at once where a value is no promise: a promise for each request would cost more than its admission. */
function after<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

function identified(key: Key): Identity {
  const prefix = key.issuer === undefined ? KEY_PREFIX : TOKEN_PREFIX;
  return { name: prefix + key.name, key, refused: null };
}

/** The parts are joined by a character that no name has. */
function ownerOf(name: string, { rights: { hash }, issuer }: Key): string {
  if (issuer !== undefined) return `${name}#${issuer}#${hash}`;
  return hash === '' ? name : `${name}#${hash}`;
}

/** Browsers send a preflight without credentials (Fetch, 4.8). */
export function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
