import { defaultMix } from './default-mix.ts';
import { Requests } from './http/requests.ts';
import type { LoadCommand } from './options.ts';
import { Mix } from './queries.ts';
import type { ShownOptions } from './result.ts';
import type { WritesTo } from './writes.ts';
import { NoTarget, type TargetDescription, type ListedResource } from './target.ts';

/** What a run asks for. */
export interface Plan {
  /** null: no pages. */
  readonly mix: Mix | null;
  readonly streams: readonly URL[];
  /** The path of the feed of changes. null: nothing is followed. */
  readonly follow: string | null;
  /** null: nothing is written. */
  readonly write: WritesTo | null;
  readonly prefix: string;
}

/**
 * Chooses what a command leaves open by what the server has. Rejects with NoTarget when it has nothing of the kind.
 * `prefix`: the path below which the server is. `writeKey`: for writes to another server, which does not get the key of
 * this one.
 */
export async function planOf(
  command: LoadCommand,
  { requests, writeKey }: { readonly requests: Requests; readonly writeKey: string | null },
  prefix: string,
  { resources }: TargetDescription,
  random: () => number,
): Promise<Plan> {
  const { queries, pages, pullers, slow, stalled, followers } = command;
  const given = queries.map((query) => ({ ...query, path: prefix + query.path }));
  const mix = pages === null ? [] : given.length > 0 ? given : await defaultMix(requests, prefix, resources);
  if (pages !== null && mix.length === 0)
    throw new NoTarget('the server has no rows to ask for; use --query');
  const reads = pullers + stalled > 0 || slow !== null;
  const link = (name: string) => {
    const [largest] = resources
      .filter(({ links }) => Object.hasOwn(links, name))
      .sort((a: ListedResource, b: ListedResource) => (b.rows ?? 0) - (a.rows ?? 0));
    return largest?.links[name];
  };
  const streams = command.streams.length > 0 ? command.streams : [link('stream')];
  const follow =
    command.follow === null ? link('changes') : `${command.follow.replace(/\/changes$/, '')}/changes`;
  return {
    mix: mix.length === 0 ? null : new Mix(mix, random),
    streams: reads
      ? streams.map((path) => new URL(prefix + known(path, 'streams; use --stream'), requests.origin))
      : [],
    follow:
      followers > 0 ? prefix + known(follow, 'changes: they need the embedded store or a replica set') : null,
    write: command.write === null ? null : writesTo(command.write, prefix, requests, writeKey),
    prefix,
  };
}

/** `write`: a path of this server, or the URL of another one. */
function writesTo(write: string, prefix: string, requests: Requests, writeKey: string | null): WritesTo {
  if (!URL.canParse(write)) return { requests, path: prefix + write };
  const url = new URL(write);
  const isOwn = url.origin === requests.origin.origin;
  return { requests: isOwn ? requests : new Requests(url, writeKey), path: url.pathname };
}

function known(path: string | undefined, what: string): string {
  if (path !== undefined) return path;
  throw new NoTarget(`no resource of the server has ${what}`);
}

/** The options as the result shows them. */
export function shownOptions(command: LoadCommand, { mix }: Plan): ShownOptions {
  const { pages, find } = command;
  return {
    command: command.words,
    model: pages === null ? 'none' : pages === 'max' ? 'closed' : 'open',
    pagesPerSecond: find || typeof pages !== 'number' ? null : pages,
    connections: command.connections,
    queries: mix?.shares() ?? [],
    pullers: command.pullers,
    slow: command.slow,
    stalled: command.stalled,
    cutsPerMinute: command.cutsPerMinute,
    followers: command.followers,
    write: command.write,
    format: command.format,
    compression: command.compression,
    forSeconds: command.forSeconds,
    rampSeconds: command.rampSeconds,
    find: find?.text ?? null,
    expectRefusals: command.expectRefusals,
  };
}
