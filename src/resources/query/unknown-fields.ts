import { AppError } from '../../base/errors.ts';
import { quote } from '../../input/query.ts';
import { orRelease, rowsOf } from '../../store/batch.ts';
import { KEY } from '../../store/bookmark.ts';
import type { Index } from '../../store/indexes.ts';
import { BSON } from '../../store/values/bson.ts';
import { distance } from '../../terminal/text.ts';
import { OPERATORS, shownPath } from './grammar.ts';
import type { Refusal } from './planner.ts';
import type { Resource } from './resource.ts';

/** The rows that a look reads at each end, and the most fields that it notes. */
const LOOK = { rows: 100, bytes: 256 * 1024 };
const MOST_FIELDS = 2_000;
/** Documents and arrays deeper than this are not looked into. */
const DEEPEST = 8;

/** What other servers and MongoDB take for an operator at the end of a name. */
const FOREIGN_OPERATOR =
  /^\$?(in|nin|not_?in|ne|neq|not|is|isnull|null|like|ilike|contains|starts_?with|ends_?with|regex|match|between|exists|min|max|before|after|from|to|any|all|or|and|size|type|eq|[gl]te?)$/i;
/** The same in other grammars: `status!`, `total>`, `status[ne]`, `status__ne`. */
const FOREIGN_END = /[!<>~*]$|\[\$?\w+\]$|__\w+$/;

/**
 * Sentences on the fields of a refused query that a row does not seem to have: for those an index would hold nothing but
 * nulls. Empty when the rows at both ends, an index or a declaration have them all, or nothing is known. A hidden field is
 * as good as missing, and no sentence names one that the query does not.
 */
export async function adviceOnFields(
  { remedy = [] }: Refusal,
  indexes: readonly Index[],
  resource: Resource,
  signal: AbortSignal,
): Promise<string> {
  const { shown, kinds } = resource;
  const isOpen = (path: string) => path !== KEY && shown.leavesWhole(path);
  const declared = [...kinds.keys(), ...indexes.flatMap(({ keys }) => keys.map(({ path }) => path))];
  const known = new Set(declared.filter(isOpen));
  const missing = (path: string) => path !== KEY && !known.has(path);
  if (!remedy.some(missing)) return '';
  const look = await fieldsOfRows(resource, signal);
  if (!look) return ''; // rows of any fields may come
  for (const path of [...look].filter(isOpen)) known.add(path);
  const sentences = remedy.filter(missing).map((path) => sentenceOn(path, known));
  if (sentences.length === 0) return '';
  const advice = resource.isTerse
    ? []
    : ['A field that only other rows have can be declared (RESOURCES_FILE, `fields`).'];
  return [...sentences, ...advice].join(' ');
}

function sentenceOn(path: string, known: ReadonlySet<string>): string {
  const none = `No row that was looked at (the first and the last ${LOOK.rows}) has a field ${quote(path)}`;
  const end = path.slice(path.lastIndexOf('.') + 1);
  if ((end !== path && FOREIGN_OPERATOR.test(end)) || FOREIGN_END.test(path))
    return `${none}, and it ends in no operator: these are ${OPERATORS.map((one) => `.${one}`).join(' ')}.`;
  const near = nearestOf(path, known);
  return near === undefined ? `${none}.` : `${none}; the nearest is ${shownPath(near)}.`;
}

/** The known path that differs from one in a few characters at most. */
function nearestOf(path: string, known: ReadonlySet<string>): string | undefined {
  const most = Math.max(1, Math.floor(path.length / 3));
  const far = (one: string) => distance(path.toLowerCase(), one.toLowerCase());
  const near = [...known].map((one) => ({ one, far: far(one) })).filter((each) => each.far <= most);
  return near.toSorted((a, b) => a.far - b.far)[0]?.one;
}

/** The paths in the first and the last rows. Null where there are none, or they cannot be read. */
async function fieldsOfRows(
  { rows }: Pick<Resource, 'rows'>,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | null> {
  const fields = new Set<string>();
  try {
    for (const direction of [1, -1] as const) {
      const batch = await rows.read({ sort: KEY, direction }, {}, LOOK, signal);
      await orRelease(batch, () => {
        for (const row of rowsOf(batch)) addPaths(BSON.deserialize(row), '', DEEPEST, fields);
      });
      batch.release();
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return null;
  }
  return fields.size === 0 ? null : fields;
}

/** Adds the paths of a value's members. An array is on the way to the members of its elements. */
function addPaths(value: unknown, head: string, depth: number, paths: Set<string>): void {
  if (depth === 0 || typeof value !== 'object' || value === null || paths.size >= MOST_FIELDS) return;
  if (Array.isArray(value)) {
    for (const one of value.slice(0, DEEPEST)) addPaths(one, head, depth - 1, paths);
    return;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return; // an id, a date, a decimal
  for (const [name, member] of Object.entries(value)) {
    const path = head === '' ? name : `${head}.${name}`;
    paths.add(path);
    addPaths(member, path, depth - 1, paths);
  }
}
