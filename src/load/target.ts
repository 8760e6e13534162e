import { reasonOf } from '../base/error-reason.ts';
import { clipped } from '../terminal/text.ts';
import { answerTo, jsonOf, type Answer } from './http/get.ts';
import type { Requests } from './http/requests.ts';
import type { Target } from './result.ts';

/** The load test cannot begin. The message says why. */
export class NoTarget extends Error {
  override readonly name = 'NoTarget';
}

/** A resource as GET /resources lists it. */
export interface ListedResource {
  readonly name: string;
  readonly rows: number | null;
  readonly formats: readonly string[];
  readonly queries: readonly { readonly filters: readonly string[]; readonly sort: string | null }[];
  readonly links: Readonly<Record<string, string>>;
}

/** The server that is tested. */
export interface TargetDescription {
  readonly target: Target;
  readonly resources: readonly ListedResource[];
}

const JSON_FORM = { accept: 'application/json', coding: 'identity' };

/**
 * Asks a server what it is, before any load. `prefix`: the path below which a proxy has the server, without a slash at the
 * end. Rejects with NoTarget when it cannot be reached, is no sluice server, is not ready, or refuses the key.
 */
export async function describe(requests: Requests, prefix: string): Promise<TargetDescription> {
  const url = requests.origin.origin + prefix;
  const get = (path: string) => answerTo(requests.origin, requests.get(prefix + path, JSON_FORM));
  const ready = await get('/readyz').catch((error: unknown) => {
    throw new NoTarget(`cannot reach ${url}: ${reasonOf(error)}`, { cause: error });
  });
  const health = Object(jsonOf(ready)) as { status?: unknown; reasons?: unknown };
  if (typeof health.status !== 'string' || !Array.isArray(health.reasons))
    throw new NoTarget(`${url} is not a sluice server: its /readyz answered ${ready.head.status}`);
  const reasons = health.reasons.map(String);
  if (ready.head.status !== 200) throw new NoTarget(`${url} is not ready: ${reasons.join('; ')}`);
  const list = await get('/resources');
  if (list.head.status !== 200) throw new NoTarget(refusal(url, list));
  const resources = resourcesOf(jsonOf(list));
  const api = await get('/openapi.json');
  const metrics = await get('/metrics');
  const target: Target = {
    url,
    version: versionOf(jsonOf(api)),
    ready: { status: ready.head.status, reasons },
    rateLimit: rateLimitOf(list.head.header('ratelimit-policy')),
    metrics:
      metrics.head.status === 200
        ? { reachable: true, reason: null }
        : { reachable: false, reason: `/metrics answered ${metrics.head.status}` },
    resources: resources.map(({ name, rows }) => ({ name, rows })),
  };
  return { target, resources };
}

function refusal(url: string, answer: Answer): string {
  const { detail } = Object(jsonOf(answer)) as { detail?: unknown };
  const { status } = answer.head;
  const what = typeof detail === 'string' ? `: ${clipped(detail)}` : '';
  const remedy = status === 401 || status === 403 ? '; give a key with --key-file FILE' : '';
  return `${url}/resources answered ${status}${what}${remedy}`;
}

function resourcesOf(list: unknown): ListedResource[] {
  const { resources } = Object(list) as { resources?: unknown };
  if (!Array.isArray(resources)) return [];
  return (resources as (Partial<ListedResource> & { unavailable?: string })[])
    .filter(({ name, links, unavailable }) => name && links && unavailable === undefined)
    .map(({ name = '', rows = null, formats = [], queries = [], links = {} }) => ({
      name,
      rows,
      formats,
      queries,
      links,
    }));
}

function versionOf(api: unknown): string | null {
  const { info } = Object(api) as { info?: { version?: unknown } };
  return typeof info?.version === 'string' ? info.version : null;
}

/** Reads RateLimit-Policy: `"default";q=60000;w=60`. */
function rateLimitOf(policy: string | null): Target['rateLimit'] {
  const [, requests] = /;q=(\d+)/.exec(policy ?? '') ?? [];
  const [, windowSeconds] = /;w=(\d+)/.exec(policy ?? '') ?? [];
  if (requests === undefined || windowSeconds === undefined) return null;
  return { requests: Number(requests), windowSeconds: Number(windowSeconds) };
}
