import type { Client } from '../access/admission.ts';
import { scopeOf } from '../access/rights.ts';
import type { Reply } from '../engine/edge.ts';
import { AppError, storeUnavailable } from '../base/errors.ts';
import { mayKnow } from '../http/permit.ts';
import { STORE_PROBLEMS, type Input, type Route } from '../http/route.ts';
import { invalid } from '../input/parameter.ts';
import { quote, type Query } from '../input/query.ts';
import { namedObject, text, Type } from '../base/schema.ts';
import { beginWalk } from './changes/feed.ts';
import { followReply } from './changes/response.ts';
import { REMOVED } from './changes/lines.ts';
import { readChangesQuery, readResources, SEVERAL_CHANGES } from './changes/parameters.ts';
import { answerOf, PROBLEMS, TYPES } from './changes/change-routes.ts';
import { BETWEEN_CURSORS, ofOneFeed, SeveralFeeds } from './changes/several.ts';
import type { OpenResource } from './open.ts';
import { resourceFor } from './query/scope.ts';
import { isField } from './query/grammar.ts';
import type { RouteOptions } from './route-docs.ts';
import { decodeToken, refusal, type Token } from './token/token.ts';

const resource = text('the name of the resource');
const row = Type.Unknown({ description: 'the row as it is now' });
const ROW = namedObject('ResourceRow', 'a row of one of the resources', { resource, row });
const GONE = namedObject('ResourceRemoved', 'a row that its resource no longer has', {
  resource,
  ...REMOVED.properties,
});

type Options = Pick<RouteOptions, 'transcoder' | 'parked' | 'heartbeatMs'>;
/** The resources of now, and whether one of a name may come: see Router. */
interface ServedNow {
  readonly byName: ReadonlyMap<string, OpenResource>;
  readonly mayCome: (name: string) => boolean;
}

/** GET of what changed in several resources, over one connection. */
export function severalChangesRoute(
  open: readonly OpenResource[],
  options: Options,
  mayCome: (name: string) => boolean,
): Route {
  const byName = new Map(open.map((one) => [one.resource.name, one]));
  const served = { byName, mayCome };
  return {
    method: 'GET',
    path: '/changes',
    id: 'listChanges',
    tag: 'Resources',
    access: 'keyed',
    cost: 'stream',
    right: 'changes',
    needs: (query) => readResources(query).map((name) => ({ resource: name })),
    summary: 'Get the changes of several resources in one response',
    description:
      'Sends what `/{resource}/changes` sends, for several resources at once. Each line names its resource. One cursor holds the place in all: their cursors in the order of `resources`, joined by dots. A parameter of one resource begins with its name and a dot: `orders.status=paid` sends only these rows of `orders`, `orders.fields=status` only this field.',
    query: SEVERAL_CHANGES,
    isField: (name) => name.includes('.'),
    headers: ['Last-Event-ID'],
    answers: { 200: answerOf('the resources', [ROW, GONE]) },
    problems: [...PROBLEMS, 'not-found', 'not-indexed', 'ambiguous-value', ...STORE_PROBLEMS],
    produces: TYPES,
    handler: (input) => reply(input, served, options),
  };
}

async function reply(input: Input, served: ServedNow, options: Options): Promise<Reply> {
  const { request, query, client } = input;
  const names = readResources(query);
  const chosen = names.map((name) => servedTo(client, name, served));
  const queries = queriesOf(query, chosen);
  const asked = readChangesQuery(input, (given, parameter) => cursorsIn(given, parameter, names.length));
  if (asked.limit < names.length)
    throw invalid('limit', 'limit must be at least the number of resources: each has its share.');
  const begun = await Promise.all(
    chosen.map(async (one, n) => {
      const { name } = one.resource;
      const ofSet = { name, query: queries[n] ?? new Map<string, string>() };
      const limit = Math.floor((asked.limit + n) / names.length);
      const own = { query: { ...asked, limit, cursor: asked.cursor?.[n] }, walks: false };
      try {
        const part = resourceFor(one.resource, client);
        return { ...(await beginWalk(part, ofSet.query, own, request.signal)), ...ofSet, limit };
      } catch (error) {
        throw ofOneFeed(error, ofSet);
      }
    }),
  );
  const stops = chosen.flatMap(({ stopping }) => stopping ?? []);
  const followed = new SeveralFeeds(begun, stops, options.transcoder);
  const { lines, start, stopping } = followed;
  const what = { lines, start, followed };
  const { headers, ...whole } = followReply(input, { ...asked, limit: Infinity }, what, {
    ...options,
    stopping,
  });
  const isPart = names.some((name) => client.key && scopeOf(client.key.rights, name)?.where.length);
  return { ...whole, headers: { ...headers, ...(isPart && { 'filtered-by-key': 'true' }) } };
}

/** AppError `forbidden` for what a key does not open, existing or not, else `not-found`. Both list what it opens. */
function servedTo(client: Pick<Client, 'key'>, name: string, served: ServedNow): OpenResource {
  const found = served.byName.get(name);
  if (found && mayKnow(client, name)) return found;
  const known = [...served.byName.keys()].filter((one) => mayKnow(client, one)).join(', ') || 'none';
  if (!mayKnow(client, name))
    throw new AppError('forbidden', `The key does not open ${quote(name)}. It opens ${known}.`);
  if (served.mayCome(name)) throw storeUnavailable(new Error('it is not known yet'));
  throw new AppError('not-found', `There is no resource ${quote(name)}. The resources are ${known}.`);
}

/** `orders.status=paid` is `status=paid` of `orders`, the longest name that fits. AppError `unknown-parameter`. */
function queriesOf(query: Query, chosen: readonly OpenResource[]): readonly Query[] {
  const queries = chosen.map(() => new Map<string, string>());
  const sets = chosen.map(({ resource: { name, form } }, n) => ({ head: `${name}.`, form, own: queries[n] }));
  sets.sort((a, b) => b.head.length - a.head.length);
  for (const [name, value] of query) {
    if (SEVERAL_CHANGES.some((one) => one.name === name)) continue;
    const set = sets.find(({ head }) => name.startsWith(head));
    const rest = name.slice(set?.head.length ?? 0);
    const { closed, fields } = set?.form ?? {};
    const isKnown = closed ? closed.some(({ parameter }) => parameter.name === rest) : isField(rest);
    if (!set || rest === '' || !(isKnown || rest === fields?.name))
      throw new AppError(
        'unknown-parameter',
        `${quote(name)} is not a parameter of this resource. Those of a set are filters, and fields, behind its name and a dot, such as ${sets[0]?.head ?? ''}fields.`,
        { parameter: name },
      );
    set.own?.set(rest, value);
  }
  return queries;
}

/** The cursors of the sets, of which the one of all is made. AppError `invalid-cursor`. */
function cursorsIn(given: string, parameter: string, sets: number): readonly Token[] {
  const cursors = given.split(BETWEEN_CURSORS);
  if (cursors.length !== sets)
    throw refusal({ kind: 'feed', parameter }, 'it is of more or fewer sets than resources names');
  return cursors.map((one) => decodeToken(one, 'feed', parameter));
}
