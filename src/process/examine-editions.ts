import { randomBytes } from 'node:crypto';
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { reasonOf } from '../base/error-reason.ts';
import type { Finding } from '../base/finding.ts';
import { columnsLeftOut } from '../editions/delta/schema.ts';
import type { ItemsMember, ResourceDeclaration } from '../resources/declarations.ts';
import { Selection } from '../rows/selection.ts';
import { openObjects } from '../server/open-objects.ts';
import type { Config } from '../settings/config.ts';

const RETRY_MS = 2_000;

/** What is declared of a resource with editions. */
type DeclaredOfEditions = Partial<Pick<ResourceDeclaration, 'editions' | 'fields' | 'hide' | 'show'>>;

/** What a server of these settings needs for the editions of resources, but for what examine.ts asks of MongoDB. */
export async function examineEditions(config: Config, report: (finding: Finding) => void): Promise<void> {
  const declared = declaredIn(config);
  if (declared.size === 0) return;
  report(await filesOf(config));
  for (const [name, one] of declared) {
    ofKeys(config, name, one).forEach(report);
    tableOf(name, one).forEach(report);
  }
}

/** Whether a resource has editions. */
export function hasEditions(
  { EDITIONS = [] }: Pick<Config, 'EDITIONS'>,
  name: string,
  { editions }: Pick<ItemsMember, 'editions'>,
): boolean {
  return editions !== undefined || EDITIONS.includes(name);
}

function declaredIn(config: Config): ReadonlyMap<string, DeclaredOfEditions> {
  const { resources, itemsMember, EDITIONS = [] } = config;
  const all = new Map<string, DeclaredOfEditions>(EDITIONS.map((name) => [name, {}]));
  for (const { name, collection, pattern, ...one } of resources) {
    const path = name ?? collection;
    if (!pattern && hasEditions(config, path, one)) all.set(path, one);
  }
  if (itemsMember?.editions) all.set('items', itemsMember);
  return all;
}

/** Whether the files can be written. A folder gets none; a bucket gets one, which is removed. */
async function filesOf({ filesPlace, DATA_DIR, MONGODB_URI }: Config): Promise<Finding> {
  const promise = 'files of editions can be stored';
  try {
    if (filesPlace?.kind !== 'bucket' && (filesPlace || MONGODB_URI === undefined)) {
      const folder = await firstThere(join(filesPlace?.path ?? DATA_DIR, 'editions'));
      await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
      return { promise, holds: true, seen: `access: ${folder}` };
    }
    const objects = await openObjects(filesPlace, null, { retryMs: RETRY_MS });
    const path = `doctor/${randomBytes(8).toString('hex')}.json`;
    try {
      await objects.put(path, Buffer.from('{}'));
      await objects.remove(path);
    } finally {
      objects.close();
    }
    return { promise, holds: true, seen: 'PutObject, DeleteObject below editions/' };
  } catch (error) {
    return { promise, holds: false, seen: `FILES: ${reasonOf(error)}` };
  }
}

/** A folder, or the nearest one above it that is there. */
async function firstThere(folder: string): Promise<string> {
  const isThere = await stat(folder).then(
    () => true,
    () => dirname(folder) === folder,
  );
  return isThere ? folder : firstThere(dirname(folder));
}

/** The keys that get 403: an edition has all rows, and all fields that the resource shows. */
function ofKeys({ apiKeys }: Config, name: string, { hide, show }: DeclaredOfEditions): readonly Finding[] {
  const shown = new Selection({ hide, show });
  return (apiKeys ?? []).flatMap(({ name: key, rights }) => {
    const scope = rights.scopes.get(name);
    if (!scope || !rights.actions.has('stream')) return [];
    const hidden = scope.hide.filter((path) => !shown.hides(path));
    if (scope.where.length === 0 && hidden.length === 0) return [];
    const part = scope.where.length > 0 ? 'only some rows' : 'not all fields';
    const seen = `API_KEYS_FILE: the key ${key} opens ${part}, so it gets 403; /${name}/stream and /${name}/changes have its part`;
    return [{ promise: `editions of /${name} are for each key that may stream it`, holds: null, seen }];
  });
}

function tableOf(name: string, { editions, fields = {} }: DeclaredOfEditions): readonly Finding[] {
  if (editions?.formats?.includes('parquet') !== true) return [];
  const left = columnsLeftOut(Object.keys(fields));
  const promise = `the table of /${name} has a column for each declared field`;
  const seen = left.length === 0 ? 'all can be columns' : `values of ${left.join(', ')} stand in _rest`;
  return [{ promise, holds: left.length === 0 ? true : null, seen: `RESOURCES_FILE: ${seen}` }];
}
