import { AppError } from '../base/errors.ts';
import { mayKnow } from '../http/permit.ts';
import { json, NOT_STORED } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, type Route } from '../http/route.ts';
import { count, listOf, namedObject, object, text, textOrNull, Type, type Static } from '../base/schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import type { Index } from '../store/indexes.ts';
import type { Count } from '../store/store.ts';
import { ResourceLinks, type ServedBeside } from './links.ts';
import { STREAM_FORMATS } from './stream/formats/list.ts';
import type { Alias } from './query/form.ts';
import { keyOr } from './query/grammar.ts';
import { kindsAt } from './query/kind-table.ts';
import { askableOfResource, listedField, withoutSuffix, type Askable } from './query/not-indexed.ts';
import { resourceFor } from './query/scope.ts';
import { aliasesOf, indexesOf, type Resource } from './query/resource.ts';

const QUERY = object('a form of query', {
  filters: listOf('the paths that must each have a value', text('a path')),
  sort: textOrNull('the path of the order, and of a range; null: the filters name one row at most'),
  index: text('the name of the index that answers'),
});
const FIELD = object('a field', {
  field: text('a path that can be asked'),
  kinds: listOf(
    'the kinds of its values: a text is read as the only one, and needs a prefix if it can be of several',
    text('a kind of values'),
  ),
});
const MISSING = object('an index that lacks the key', {
  index: text('the name of an index that orders no rows, because it does not end in `_id`'),
  line: text('the line that makes an index that does'),
});
const REFUSED = object('an index that is not used', {
  index: text('the name of the index'),
  reason: text('why it is not used'),
});
const ALIAS = object('a parameter', {
  name: text('the name of the parameter'),
  for: text('the path that it asks for, with the operator of a bound'),
  type: text('its type in a JSON body'),
});
const RESOURCE = object('a resource', {
  name: text('the name, the first segment of its URLs'),
  rows: Type.Optional(count('the estimated number of rows; missing where the store keeps none')),
  unavailable: Type.Optional(text('why the resource cannot be read now')),
  queries: listOf('what can be asked', QUERY),
  kinds: listOf(
    'the kinds of the values of fields, as declared or found: all of the first field of an index, those of a sample for others',
    FIELD,
  ),
  missing: listOf('indexes that would answer more queries with `_id` at their end', MISSING),
  refused: listOf('indexes that answer no query', REFUSED),
  formats: listOf('the formats of streams', text('a format')),
  aliases: Type.Optional(
    listOf('parameters that stand for a field; where `onlyAliases` is true, no others ask for fields', ALIAS),
  ),
  onlyAliases: Type.Optional(Type.Boolean({ description: 'true: no path is a parameter by itself' })),
  links: object('the URLs of the resource that the client may use', {
    page: Type.Optional(text('a URL')),
    stream: Type.Optional(text('a URL')),
    partitions: Type.Optional(text('a URL')),
    values: Type.Optional(text('the URL of the distinct values of one field; `field` can name others')),
    changes: Type.Optional(text('a URL; missing where the store has no changes')),
    exports: Type.Optional(text('the URL to which an order for an export is sent')),
    edition: Type.Optional(text('the URL of the newest edition; missing where the resource has none')),
  }),
});
const RESOURCES = namedObject('Resources', 'the resources and what can be asked of each', {
  resources: listOf(
    'the resources that the operator declared, then items and users where they are served',
    RESOURCE,
  ),
  streams: Type.Optional(
    text('the URL of the open streams of the server; missing where the client may not list them'),
  ),
});
export type ResourceDescription = Static<typeof RESOURCE>;
const serialize = serializerOf(RESOURCES);

/** GET /resources: what can be asked of each resource, as a client has it, and by which index; then users. `serves`: what this server has beside resources. */
export function listResources(resources: readonly Resource[], serves: ServedBeside): Route {
  return {
    method: 'GET',
    path: '/resources',
    access: 'keyed',
    cost: 'page',
    right: 'any',
    id: 'listResources',
    tag: 'Resources',
    summary: 'List the resources, and what can be asked of each',
    produces: [JSON_TYPE],
    answers: { 200: jsonAnswer('The resources', RESOURCES, ['Cache-Control']) },
    handler: async ({ request, client }) => {
      const known = resources.filter(({ name }) => mayKnow(client, name));
      const links = new ResourceLinks(client, request, serves);
      const rows = known.map(async (one) => {
        const described = await describe(resourceFor(one, client), links, request.signal);
        return { ...described, links: { ...described.links, ...links.ofEdition(one) } };
      });
      const listed = [
        ...(await Promise.all(rows)),
        ...(serves.users && mayKnow(client, 'users') ? [{ ...USERS, links: links.ofUsers() }] : []),
      ];
      return json(200, serialize({ resources: listed, ...links.ofStreams() }), NOT_STORED);
    },
  };
}

/** What can be asked of a resource now. A resource that the store cannot read now is listed with the reason. */
async function describe(
  resource: Resource,
  links: ResourceLinks,
  signal: AbortSignal,
): Promise<ResourceDescription> {
  const known = {
    name: resource.name,
    formats: [...STREAM_FORMATS],
    ...aliasesIn(resource),
    links: links.of(resource),
  };
  try {
    const indexes = await indexesOf(resource, signal);
    const { rows, is } = await resource.rows.count({ sort: '_id', direction: 1 }, 'estimated', signal);
    const forms = askableOfResource(resource, indexes);
    const field = listedField(forms);
    return {
      ...known,
      links: await links.ofReadable(resource, field, signal),
      queries: forms.map(({ filters, ...form }) => ({ ...form, filters: [...filters] })),
      kinds: await kindsOf(resource, forms, signal),
      ...(resource.scope
        ? { ...(isOfScope(resource, is) && { rows }), ...NONE }
        : { rows, ...(resource.isTerse ? NONE : forOperator(resource, indexes)) }),
    };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...known, unavailable: error.message, queries: [], kinds: [], missing: [], refused: [] };
  }
}

function aliasesIn(resource: Resource) {
  const { closed } = resource.form;
  if (closed) return { aliases: closed.map(aliasOf), onlyAliases: true };
  const aliases = aliasesOf(resource).map(aliasOf);
  return aliases.length > 0 && { aliases };
}

function aliasOf({ parameter, to }: Alias) {
  return { name: parameter.name, for: to, type: String(parameter.schema.type) };
}

/** The kinds of each field that can be asked. */
export function kindsOf(
  resource: Resource,
  forms: readonly Askable[],
  signal: AbortSignal,
): Promise<ResourceDescription['kinds']> {
  const fields = new Set(
    forms.flatMap(({ filters, sort }) => (sort === null ? filters : [...filters, sort])),
  );
  return Promise.all(
    [...fields].map(async (field) => {
      const declared = resource.kinds.get(keyOr(field));
      if (declared !== undefined) return { field, kinds: [declared] };
      return { field, kinds: [...(await kindsAt(resource, keyOr(field), signal)).kinds] };
    }),
  );
}

/** Whether a count is of the rows that a key opens alone. */
function isOfScope({ scope }: Resource, is: Count['is']): boolean {
  return is === 'exact' || scope?.where.length === 0;
}

const NONE: Pick<ResourceDescription, 'missing' | 'refused'> = { missing: [], refused: [] };

/** What an operator can do about indexes. */
function forOperator(
  resource: Resource,
  indexes: readonly Index[],
): Pick<ResourceDescription, 'missing' | 'refused'> {
  return {
    missing: withoutSuffix(indexes).map(({ index, fields }) => ({
      index,
      line: resource.indexLine(fields),
    })),
    refused: indexes.flatMap(({ name: index, refused }) =>
      refused === undefined ? [] : [{ index, reason: refused }],
    ),
  };
}

/** Users: records in order of id. */
const USERS: Omit<ResourceDescription, 'links'> = {
  name: 'users',
  queries: [{ filters: [], sort: 'id', index: '_id_' }],
  kinds: [],
  missing: [],
  refused: [],
  formats: [],
};
