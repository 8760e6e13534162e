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

/** Where the metrics of the server are. */
export interface MetricsPlace {
  readonly requests: Requests;
  readonly path: string;
}

const JSON_FORM = { accept: 'application/json', coding: 'identity' };

/**
 * Asks a server what it is, before any load. `prefix`: the path below which a proxy has the server, without a slash at the
 * end. Rejects with NoTarget when it cannot be reached, is no sluice server, is not ready, or refuses the key.
 */
export async function describe(
  requests: Requests,
  prefix: string,
  metricsAt: MetricsPlace,
): Promise<TargetDescription> {
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
  const resources = resourcesOf(jsonOf(list), prefix);
  const api = await get('/openapi.json');
  const metrics = await metricsOf(metricsAt);
  const target: Target = {
    url,
    version: versionOf(jsonOf(api)),
    ready: { status: ready.head.status, reasons },
    rateLimit: rateLimitOf(list.head.header('ratelimit-policy')),
    metrics,
    resources: resources.map(({ name, rows }) => ({ name, rows })),
  };
  return { target, resources };
}

/** Whether metrics can be read there. */
async function metricsOf({ requests, path }: MetricsPlace): Promise<Target['metrics']> {
  try {
    const { head } = await answerTo(requests.origin, requests.get(path, JSON_FORM));
    if (head.status === 200) return { reachable: true, reason: null };
    return { reachable: false, reason: `${path} answered ${head.status}` };
  } catch (error) {
    return { reachable: false, reason: `cannot reach ${requests.origin.origin}: ${reasonOf(error)}` };
  }
}

function refusal(url: string, answer: Answer): string {
  const { detail } = Object(jsonOf(answer)) as { detail?: unknown };
  const { status } = answer.head;
  const what = typeof detail === 'string' ? `: ${clipped(detail)}` : '';
  const remedy = status === 401 || status === 403 ? '; give a key with --key-file FILE' : '';
  return `${url}/resources answered ${status}${what}${remedy}`;
}

/** Links without the prefix, which they have where the proxy tells the server of it. */
function resourcesOf(list: unknown, prefix: string): ListedResource[] {
  const below = (link: string) => (link.startsWith(`${prefix}/`) ? link.slice(prefix.length) : link);
  const { resources } = Object(list) as { resources?: unknown };
  if (!Array.isArray(resources)) return [];
  return (resources as (Partial<ListedResource> & { unavailable?: string })[])
    .filter(({ name, links, unavailable }) => name && links && unavailable === undefined)
    .map(({ name = '', rows = null, formats = [], queries = [], links = {} }) => ({
      name,
      rows,
      formats,
      queries,
      links: Object.fromEntries(Object.entries(links).map(([kind, link]) => [kind, below(link)])),
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
