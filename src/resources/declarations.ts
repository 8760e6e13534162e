import { readFileSync } from 'node:fs';
import { AppError } from '../base/errors.ts';
import { parseJson } from '../input/body-json.ts';
import { bodyCheck } from '../input/validate.ts';
import { listOf, object, text, Type, wordOf, type Static } from '../base/schema.ts';
import { reasonOf } from '../base/error-reason.ts';
import { EDITIONS_MEMBER, editionsFaults } from './declared-editions.ts';
import { KINDS, type Kind } from './query/kinds.ts';

/** A resource's name is the first segment of its URLs. */
export const RESOURCE_NAME = '[A-Za-z0-9][A-Za-z0-9._~-]{0,119}';
const NAME = `^${RESOURCE_NAME}$`;

/** The resource that a file declares as `{}`, because its collection and indexes are sluice's own. */
const ITEMS = 'items';

/** First segments of the paths that other routes have. */
export const TAKEN: readonly string[] = [
  'api',
  'exports',
  'resources',
  'changes',
  'clients',
  'livez',
  'readyz',
  'metrics',
  'problems',
  'docs',
  'explorer',
  'openapi.json',
];

const path = (description: string) => Type.String({ minLength: 1, maxLength: 1024, description });
const paths = (description: string) =>
  Type.Array(path('the path of a field'), { minItems: 1, uniqueItems: true, description });

const RESOURCE = object(
  'a resource: an object with collection, hide or show, indexes, fields, aliases, editions and public',
  {
    collection: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'the collection, or DATABASE.COLLECTION; without it, the collection of the name of the resource',
      }),
    ),
    hide: Type.Optional(paths('paths of fields that never leave the server')),
    show: Type.Optional(paths('paths of the only fields that leave the server; not together with hide')),
    indexes: Type.Optional(
      listOf(
        'indexes that are made when they are missing and MONGODB_MANAGE_INDEXES allows it',
        paths('the fields of an index, without _id at its end'),
      ),
    ),
    fields: Type.Optional(
      Type.Record(Type.String(), wordOf<Kind>(KINDS), {
        description: 'the kinds of values of fields, by path',
      }),
    ),
    aliases: Type.Optional(
      Type.Record(Type.String(), path('a path, with the operator of a bound or `.in` behind it'), {
        description: 'parameters that stand for others, such as `from` for `createdAt.gte`, by name',
      }),
    ),
    editions: Type.Optional(EDITIONS_MEMBER),
    public: Type.Optional(
      Type.Boolean({
        description: 'true: caches may give its editions to anybody, so they need no key; false without it',
      }),
    ),
  },
);

/** The file that RESOURCES_FILE names. docs/resources.schema.json is this schema. */
export const RESOURCES_FILE_SCHEMA = object('an object with resources', {
  $schema: Type.Optional(text('a URL of this schema, for editors')),
  resources: Type.Record(Type.String(), RESOURCE, {
    description:
      'the resources by name, each an object; `items`: {} has the server make the collection and the indexes of /items, and may have editions and public',
    propertyNames: {
      pattern: NAME,
      description: 'a name of 1 to 120 letters, digits, dots, hyphens, underscores and tildes',
    },
  }),
});
const check = bodyCheck(RESOURCES_FILE_SCHEMA);

/** A resource as its operator declared it. */
export interface ResourceDeclaration extends Static<typeof RESOURCE> {
  /** Undefined: EXPOSE names the collection, and the resource has the collection's name. */
  readonly name: string | undefined;
  readonly collection: string;
  /** Where it is declared, for faults: a JSON pointer into the file, or an entry of EXPOSE. */
  readonly place: string;
  /** Present: it stands for each collection that matches. */
  readonly pattern?: CollectionPattern;
}

/** The collections that an entry of EXPOSE with `*` names. */
export interface CollectionPattern {
  /** Undefined: the database of MONGODB_URI. */
  readonly database: string | undefined;
  readonly matches: (collection: string) => boolean;
  /** The entries that leave out none of these collections, which are those of the database. */
  readonly idle: (collections: readonly string[]) => readonly string[];
}

/** The members that the items may have. */
const OF_ITEMS: readonly string[] = ['editions', 'public'];

export type ItemsMember = Pick<Static<typeof RESOURCE>, 'editions' | 'public'>;

interface DeclarationsRead {
  readonly resources: readonly ResourceDeclaration[];
  /** What the file declares of the items, whose collection and indexes the server then makes. Null: nothing. */
  readonly items: ItemsMember | null;
  readonly faults: readonly string[];
}

/** Reads the resources that the settings declare, with all faults. */
export function readDeclarations(given: Readonly<Record<string, string | undefined>>): DeclarationsRead {
  const { EXPOSE: expose, RESOURCES_FILE: file, MONGODB_URI: uri } = given;
  const exposed = expose === undefined ? NOTHING : readExpose(expose, uri !== undefined);
  const filed = file === undefined ? NOTHING : readFile(file);
  return {
    resources: [...exposed.resources, ...filed.resources],
    items: filed.items,
    faults: [...exposed.faults, ...filed.faults],
  };
}

const NOTHING: DeclarationsRead = { resources: [], items: null, faults: [] };

function readExpose(expose: string, hasMongo: boolean): DeclarationsRead {
  const entries = expose.split(',').map((name) => name.trim());
  const faults = hasMongo ? [] : ['EXPOSE needs MONGODB_URI: it names collections of MongoDB'];
  for (const [n, name] of entries.entries()) {
    if (name === '' || name === '!') faults.push('EXPOSE must be names of collections, separated by commas');
    else if (entries.indexOf(name) < n) faults.push(`EXPOSE names ${name} twice`);
  }
  const names = entries.filter((name) => !name.startsWith('!'));
  const exclusions = entries.filter((name) => name.startsWith('!')).map((name) => name.slice(1));
  faults.push(...exclusions.flatMap((name) => exclusionFault(name, names) ?? []));
  const resources = names.map((collection): ResourceDeclaration => ({
    name: undefined,
    collection,
    place: `EXPOSE: ${collection}`,
    ...(isPattern(collection) && { pattern: patternOf(collection, exclusions) }),
  }));
  return { resources, items: null, faults };
}

/** Why an exclusion leaves nothing out, so that it does not mean what it says. Undefined: it can leave something out. */
function exclusionFault(name: string, names: readonly string[]): string | undefined {
  const odd = /[?[\]{}]/.exec(name)?.[0];
  if (odd !== undefined) return `EXPOSE: !${name} has ${odd}, but only * stands for other characters`;
  const both = names.find((one) => !isPattern(one) && glob(name).test(one));
  if (both !== undefined) return `EXPOSE names ${both}, which !${name} leaves out`;
  if (names.some((one) => isPattern(one) && meet(one, name))) return undefined;
  return `EXPOSE: !${name} leaves nothing out: no pattern can match it. Write the database of a pattern such as crm.* in front: !crm.NAME`;
}

/** Whether two names in which `*` stands for any characters can mean the same. */
function meet(a: string, b: string): boolean {
  let reached = new Set([0]); // the places in b that may be behind what was read of a
  const through = (places: ReadonlySet<number>): Set<number> => {
    const all = new Set(places);
    for (const at of all) if (b[at] === '*') all.add(at + 1);
    return all;
  };
  for (const character of a) {
    const next = new Set<number>();
    for (const at of through(reached)) {
      if (b[at] === '*') next.add(at);
      if (b[at] === character) next.add(at + 1);
      if (character === '*') for (let to = at; to <= b.length; to++) next.add(to);
    }
    reached = next;
  }
  return through(reached).has(b.length);
}

function isPattern(name: string): boolean {
  return name.includes('*');
}

/** `crm.*` is of the database crm, `*` and `shop_*` of the one of MONGODB_URI. `excluded` match `crm.secret`, or `secret` there. */
function patternOf(entry: string, exclusions: readonly string[]): CollectionPattern {
  const dot = entry.indexOf('.');
  const isElsewhere = dot > 0 && dot < entry.indexOf('*');
  const [database, names] = isElsewhere ? [entry.slice(0, dot), entry.slice(dot + 1)] : [undefined, entry];
  const wanted = glob(names);
  const own = exclusions.filter((name) => meet(entry, name)).map((name) => ({ name, form: glob(name) }));
  const full = (collection: string) => (database === undefined ? collection : `${database}.${collection}`);
  return {
    database,
    matches: (collection) => wanted.test(collection) && !own.some(({ form }) => form.test(full(collection))),
    idle: (all) =>
      own.filter(({ form }) => !all.some((one) => form.test(full(one)))).map(({ name }) => `!${name}`),
  };
}

/** A name in which `*` stands for any characters. */
function glob(name: string): RegExp {
  return new RegExp(`^${name.replace(/[^\w*]/g, '\\$&').replaceAll('*', '.*')}$`, 's');
}

const NO_MEMBER_OF_ITEMS =
  'items has no members but editions and public: its fields and indexes are those of the server; give another collection another name';

function readFile(file: string): DeclarationsRead {
  const at = (place: string, detail: string) =>
    `RESOURCES_FILE ${file} ${place === '' ? '/' : place}: ${detail}`;
  try {
    const body = parseJson(readFileSync(file));
    // A name that begins with $ is refused in documents of users. Here it names the schema, for editors.
    const sound = body.faults.filter(({ pointer }) => pointer !== '/$schema');
    const { resources: all } = check({ ...body, faults: sound });
    const { [ITEMS]: items, ...resources } = all;
    const declared = Object.entries(resources).map(([name, declaration]) => ({
      ...declaration,
      name,
      collection: declaration.collection ?? name,
      place: `RESOURCES_FILE ${file} /resources/${name}`,
    }));
    const strange = Object.keys(items ?? {}).filter((member) => !OF_ITEMS.includes(member));
    const faults = [
      ...strange.map((member) => at(`/resources/${ITEMS}/${member}`, NO_MEMBER_OF_ITEMS)),
      ...Object.entries(all)
        .flatMap(([name, one]) => editionsFaults(one.editions ?? {}, `/resources/${name}/editions`))
        .map(({ pointer, detail }) => at(pointer, detail)),
    ];
    return { resources: declared, items: items ?? null, faults };
  } catch (error) {
    if (error instanceof AppError)
      return {
        ...NOTHING,
        faults: (error.errors ?? [{ pointer: '', detail: error.message }]).map(({ pointer, detail }) =>
          at(pointer, detail.replace(/^The request body/, 'The file')),
        ),
      };
    return { ...NOTHING, faults: [`RESOURCES_FILE cannot be read: ${reasonOf(error)}`] };
  }
}

/** Why a resource cannot have a name. Undefined: it can. */
export function nameFault(name: string): string | undefined {
  if (TAKEN.includes(name)) return `the name ${name} is taken by a route of the server`;
  return new RegExp(NAME).test(name)
    ? undefined
    : `the name ${JSON.stringify(name)} cannot be a segment of a URL`;
}
