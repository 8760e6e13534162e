import { AppError } from '../errors.ts';
import { KEY_PREFIX, type Limiter, type Taken } from '../limiter/limiter.ts';
import { limitHeaders, tooManyRequests, type Policy } from '../limiter/policy.ts';
import type { Backlog } from '../limiter/backlog.ts';
import type { StreamSlots } from '../limiter/streams.ts';
import type { ClientReader } from './client.ts';
import { conditional } from './conditional.ts';
import type { Reply, Request } from './edge.ts';
import type { Authenticate } from './keys.ts';
import { ranged } from './range.ts';
import type { Handler } from './router.ts';

/** Asked by machines that start and stop this one: a probe that is refused would kill a server for being busy. */
const PROBES = new Set(['/livez', '/readyz']);
/** Let in also when the server has too much to do: what it says then matters most. */
const WATCHERS = new Set([...PROBES, '/metrics']);

/** MAX_STREAMS bounds how many are open. */
const STREAM = '/items/stream';

/** What says how to use the server, and holds nothing of what it serves. */
const OPEN = /^\/(problems\/|openapi\.json$|docs(\/|$))/;

/** What is decided about a request before anything is done for it. */
export interface Admission {
  /** For every answer, also errors: RateLimit and RateLimit-Policy, unless RATE_LIMIT is off. */
  readonly headers: Reply['headers'];
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
  readonly client: string;
  readonly refused: AppError | null;
}

const NOTHING = () => undefined;

/** Decides who is let in: by key, by rate, and by open streams. */
export class Admissions {
  private readonly options: AdmissionOptions;
  private readonly headers: (taken: Taken) => Reply['headers'];
  private readonly done: () => void;

  constructor(options: AdmissionOptions) {
    this.options = options;
    this.done = () => options.backlog?.done();
    this.headers = options.rate === null ? () => ({}) : limitHeaders(options.rate.policy);
  }

  /**
   * Counts the request for its client. Whoever has no valid key is counted by address, so that keys cannot be guessed
   * faster than RATE_LIMIT, and nobody uses up another's requests. Never throws or rejects.
   */
  admit(request: Request): Admission | Promise<Admission> {
    const { rate } = this.options;
    const identity = this.refuseOverload(request, this.identify(request));
    request.notes.client = identity.client;
    if (rate === null) return this.admission(request, {}, identity.refused);
    const taken = rate.limiter.take(identity.client);
    if (!(taken instanceof Promise)) return this.decide(request, identity, rate.policy, taken);
    return taken.then((late) => this.decide(request, identity, rate.policy, late));
  }

  /**
   * A handler whose stream holds a slot, from before anything is read for it until it ends or its client goes. AppError
   * `too-many-streams` or `overloaded` when there is none.
   */
  streaming(handler: Handler): Handler {
    return async (request, parameters) => {
      const release = this.options.slots.acquire(this.clientOf(request).name);
      let reply: Reply;
      try {
        reply = await handler(request, parameters);
        // What becomes of a file is decided while the slot is held: it may be a part of it, or nothing at all.
        if (reply.body.kind === 'file') reply = ranged(request, conditional(request, reply, reply.headers));
      } catch (error) {
        release();
        throw error;
      }
      const { body } = reply;
      if (body.kind !== 'stream') {
        release();
        return reply;
      }
      const run: typeof body.run = async (sink) => {
        // A client that is gone frees its slot now, not when what was under way for it has wound down.
        if (sink.signal.aborted) release();
        else sink.signal.addEventListener('abort', release, { once: true });
        try {
          await body.run(sink);
        } finally {
          sink.signal.removeEventListener('abort', release);
          release();
        }
      };
      return { ...reply, body: { ...body, run } };
    };
  }

  /** Who asks, as `admit` found out: a key's name after KEY_PREFIX, or an address; and whether a key is needed to ask at all. */
  clientOf(request: Request): { readonly name: string; readonly hasKey: boolean } {
    const name = request.notes.client === '' ? this.identify(request).client : request.notes.client;
    return { name, hasKey: this.options.authenticate !== null };
  }

  private decide(request: Request, { refused }: Identity, policy: Policy, taken: Taken): Admission {
    const within = taken.allowed || PROBES.has(request.path);
    return this.admission(request, this.headers(taken), within ? refused : tooManyRequests(policy, taken));
  }

  /** How long a request with a body takes is its client's matter, too, and streams have a bound of their own: neither is counted. */
  private admission(
    { method, path }: Request,
    headers: Reply['headers'],
    refused: AppError | null,
  ): Admission {
    if (refused !== null || (method !== 'GET' && method !== 'HEAD') || path === STREAM)
      return { headers, refused, done: NOTHING };
    this.options.backlog?.began();
    return { headers, refused, done: this.done };
  }

  private refuseOverload({ path }: Request, { client, refused }: Identity): Identity {
    const overload = WATCHERS.has(path) ? null : (this.options.overload?.() ?? null);
    return { client, refused: overload ?? refused };
  }

  private identify(request: Request): Identity {
    const { authenticate, readClient } = this.options;
    if (authenticate === null || needsNoKey(request)) return { client: readClient(request), refused: null };
    try {
      return { client: KEY_PREFIX + authenticate(request.headers.authorization), refused: null };
    } catch (error) {
      if (error instanceof AppError) return { client: readClient(request), refused: error };
      throw error;
    }
  }
}

/** Probes, the reference with its document, what a problem's `type` links to, and preflights, which browsers send without credentials (Fetch, 4.8). */
function needsNoKey({ method, path, headers }: Request): boolean {
  if (PROBES.has(path) || OPEN.test(path)) return true;
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
