import { AppError } from '../base/errors.ts';
import { codings } from '../pipeline/compress.ts';
import type { Admission, Admissions, Client } from '../access/admission.ts';
import type { MountReader } from '../access/mount.ts';
import { scopeOf } from '../access/rights.ts';
import { aroundWrites } from './reply.ts';
import { applyCoding, codedAs } from './coding.ts';
import type { Cors } from './cors.ts';
import { dispatch, routeOf } from './dispatch.ts';
import type { Ending, Reply, Request, Serve } from '../engine/edge.ts';
import { closedSink } from '../engine/exchange.ts';
import { encodingNegotiator } from './negotiate.ts';
import { mounted } from './mount.ts';
import { problem } from './problem.ts';
import { LONGEST_URL } from '../input/query.ts';
import type { OpenStreams } from './open-streams.ts';
import type { RouteMatch, Router } from './router.ts';
import { requestIdOf } from './request-id.ts';

/** Called when an answer is complete or was given up. `ms`: milliseconds since the request arrived. Must not throw. */
export type OnFinished = (request: Request, ending: Ending, ms: number) => void;

export interface Observer {
  readonly began: () => void;
  /** The notes of a request name its route. Called before any other work for it. */
  readonly routed: (request: Request) => void;
  readonly finished: OnFinished;
  /** A stream waits for its client. The returned function is called when the wait is over. */
  readonly waits: (request: Request) => () => void;
}

interface ResponderOptions {
  readonly observer: Observer;
  readonly cors: Cors;
  readonly admissions: Pick<Admissions, 'admit' | 'acquire' | 'idle' | 'mayGoOn'>;
  readonly readMount: MountReader;
  readonly streams: Pick<OpenStreams, 'listed'>;
}

/** Wraps the router with what applies to every answer: admission, request id, problems, conditional GET, coding, HEAD. */
export class Responder {
  readonly #router: Router;
  readonly #options: ResponderOptions;
  readonly #negotiate = encodingNegotiator(codings);

  constructor(router: Router, options: ResponderOptions) {
    this.#router = router;
    this.#options = options;
  }

  /** Answers a request, and tells the observer. */
  readonly serve: Serve = async (request) => {
    const { observer } = this.#options;
    const came = performance.now();
    const finished = (ending: Ending) => observer.finished(request, ending, performance.now() - came);
    observer.began();
    try {
      const reply = await this.#answer(request);
      const settled = (ending: Ending) => {
        reply.settled?.(ending);
        finished(ending);
      };
      return { ...reply, settled };
    } catch (error) {
      finished({ status: 500, bytes: 0, cut: { reason: error } });
      throw error;
    }
  };

  async #answer(request: Request): Promise<Reply> {
    const found = this.#router.find(request);
    const route = found && routeOf(found, request)?.route;
    request.notes.mount = this.#options.readMount(request);
    request.notes.route = found?.path ?? null;
    request.notes.resource = found?.resource ?? null;
    request.notes.cost = route?.cost ?? 'page';
    this.#options.observer.routed(request);
    const admission = await this.#options.admissions.admit(request, route ?? null);
    try {
      return await this.#answerAdmitted(request, found, admission);
    } finally {
      admission.done();
    }
  }

  async #answerAdmitted(request: Request, found: RouteMatch | null, admission: Admission): Promise<Reply> {
    const { admissions, observer, cors, streams } = this.#options;
    const { client } = admission;
    const requestId = requestIdOf(request);
    const coding = this.#negotiate(request.headers['accept-encoding']);
    let reply: Reply;
    try {
      if (admission.refused) throw admission.refused;
      assertShort(request);
      if (coding === null) throw notCodable();
      reply = await dispatch(request, found, client, {
        router: this.#router,
        admissions,
        coded: (plain) => codedAs(plain, coding, request).headers,
      });
    } catch (error) {
      reply = problem(error, request);
      request.notes.refusal ??= refusedOf(error);
      if (reply.status >= 500) request.notes.failure = error;
    }
    const coded = await applyCoding(reply, coding ?? 'identity', request);
    const waited = aroundWrites(coded, (write) => write()?.finally(observer.waits(request)));
    const encoded = streams.listed(waited, request, client);
    const headers = {
      'x-request-id': requestId,
      'x-content-type-options': 'nosniff',
      ...mounted(encoded.headers, request.notes.mount),
      ...(!encoded.isShared && admission.headers),
      ...varyOf(encoded, client, request),
      ...(isFiltered(client, found) && { 'filtered-by-key': 'true' }),
    };
    return headOnly(request, cors(request, { ...encoded, headers }));
  }
}

function assertShort({ path, query }: Request): void {
  if (path.length + query.length > LONGEST_URL)
    throw new AppError('uri-too-long', `The URL may have at most ${LONGEST_URL} bytes.`);
}

function notCodable(): AppError {
  const words = `Accept-Encoding refuses identity and allows none of ${codings.join(', ')}.`;
  return new AppError('not-acceptable', words);
}

/** Whether a client gets only some rows of the resource that it asks for. */
function isFiltered({ key }: Client, found: RouteMatch | null): boolean {
  const scope = key && found && scopeOf(key.rights, found.resource);
  return !!scope && scope.where.length > 0;
}

/** The reply's own Vary holds. */
const AS_IT_IS = {};

/** With keys, what a client gets depends on its key. Behind a mount, its links depend on that: caches must not mix them. */
function varyOf(
  { headers: { vary }, isShared }: Reply,
  { hasKey }: Client,
  { notes }: Request,
): { readonly vary?: string } {
  if (isShared || (!hasKey && notes.mount === '')) return AS_IT_IS;
  const names = [
    ...(vary === undefined ? [] : [vary]),
    ...(hasKey ? ['Authorization'] : []),
    ...(notes.mount === '' ? [] : ['X-Forwarded-Prefix']),
  ];
  return { vary: names.join(', ') };
}

/** The code of a refusal for want of a key or a right. null: of none of these. */
function refusedOf(error: unknown): string | null {
  if (!(error instanceof AppError)) return null;
  return error.code === 'unauthorized' || error.code === 'forbidden' ? error.code : null;
}

/** Reduces a reply to the head that GET would have. A stream releases its resources by running into a closed sink. */
async function headOnly(request: Request, reply: Reply): Promise<Reply> {
  if (request.method !== 'HEAD') return reply;
  if (reply.body.kind === 'bytes')
    return { ...reply, body: { kind: 'head', length: reply.body.bytes.length } };
  if (reply.body.kind !== 'stream') return reply;
  const unwanted = new AppError('not-found', 'HEAD has no body.');
  await reply.body.run(closedSink(unwanted)).catch((error: unknown) => {
    if (error !== unwanted) throw error;
  });
  const { length } = reply.body;
  return { ...reply, body: length === undefined ? { kind: 'none' } : { kind: 'head', length } };
}
