import { setTimeout as sleep } from 'node:timers/promises';
import { Faults } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { EditionBuilder, type EditionSource } from '../editions/builder.ts';
import { EditionMakers } from '../editions/makers.ts';
import { EditionMeter } from '../editions/meter.ts';
import { EDITIONS, EditionRecords } from '../editions/record.ts';
import { declaredEditions } from '../resources/declared-editions.ts';
import type { OpenResource } from '../resources/open.ts';
import type { ServedResources } from '../resources/served.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Config } from '../settings/config.ts';
import type { Store } from '../store/store.ts';
import { openObjects } from './open-objects.ts';
import { asksForEditions } from './open-rows.ts';

/** A process that is delayed for longer finds that another one makes its edition. Milliseconds. */
const LEASE_MS = 10_000;

type EditionSettings = Pick<
  Config,
  | ('EDITIONS' | 'EDITIONS_URL' | 'MONGODB_URI' | 'DATA_DIR')
  | ('filesPlace' | 'itemsMember' | 'needsKeys' | 'resources')
>;

interface OpenEditionsOptions {
  readonly store: Pick<Store, 'records' | 'mayWrite'>;
  readonly resources: Pick<ServedResources, 'now' | 'mayCome'>;
  readonly transcoder: Transcoder;
  readonly log: Log;
  /** How long the editions of a resource stay reserved for a process that has stopped renewing its lease. Milliseconds. */
  readonly leaseMs?: number | undefined;
}

/**
 * Opens what makes the editions that are declared, and starts it. `close` ends it. Resolves with null where no resource has
 * any, and where this server may not write what they need. Rejects with Faults when they have no place, or EDITIONS names
 * what is no resource.
 */
export async function openEditions(
  settings: EditionSettings,
  { store, resources, transcoder, log, leaseMs = LEASE_MS }: OpenEditionsOptions,
) {
  const faults = unknownNames(settings, resources);
  if (faults.length > 0) throw new Faults(faults);
  if (!asksForEditions(settings)) return null;
  const place = settings.MONGODB_URI === undefined ? settings.DATA_DIR : null;
  const objects = await openObjects(settings.filesPlace, place);
  if (!(await mayWriteRecord(store, log))) return null;
  const records = new EditionRecords(await store.records(EDITIONS));
  const meter = new EditionMeter();
  const shared = {
    records,
    objects,
    meter,
    log,
    pause: (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }),
  };
  const builder = new EditionBuilder({ ...shared, transcoder, now: Date.now, leaseMs });
  const makers = new EditionMakers({
    ...shared,
    builder,
    sources: sourcesOf(settings, resources),
    isPublic: (name) =>
      !settings.needsKeys || resources.now.some((one) => one.resource.name === name && one.isPublic === true),
  });
  const close = async (): Promise<void> => {
    const stopped = makers.close();
    objects.close(); // what waits for a bucket that is away need not wait any longer
    await stopped;
  };
  return { makers, meter, close };
}

function unknownNames(
  { EDITIONS: names = [] }: Pick<EditionSettings, 'EDITIONS'>,
  resources: Pick<ServedResources, 'now' | 'mayCome'>,
): readonly string[] {
  const known = resources.now.map(({ resource }) => resource.name);
  return names
    .filter((name) => !known.includes(name) && !resources.mayCome(name))
    .map((name) => `EDITIONS: there is no resource ${name}; there are ${known.toSorted().join(', ')}`);
}

async function mayWriteRecord(store: Pick<Store, 'mayWrite'>, log: Log): Promise<boolean> {
  const { collection } = EDITIONS;
  if ((await store.mayWrite?.({ collection })) !== false) return true;
  log.warn({ collection }, 'editions are not served: the user of the database may not write this collection');
  return false;
}

/** The resources with editions, as of now. The same map until resources come, change or go. */
function sourcesOf(
  { EDITIONS: names = [], EDITIONS_URL: url }: EditionSettings,
  resources: Pick<ServedResources, 'now'>,
) {
  const base = url === undefined ? null : url.replace(/\/*$/, '');
  const sourcesIn = ({ resource, editions }: OpenResource): readonly EditionSource[] => {
    const { name } = resource;
    if (editions === undefined && !names.includes(name)) return [];
    const { everyMs, ...declared } = declaredEditions(editions ?? {});
    const filesAt = base === null ? 'chunks/' : `${base}/${name}/chunks/`;
    return [{ resource, everyMs, form: { ...declared, filesAt } }];
  };
  let of: readonly OpenResource[] | null = null;
  let sources: ReadonlyMap<string, EditionSource> = new Map();
  return () => {
    if (of !== resources.now) {
      of = resources.now;
      sources = new Map(of.flatMap(sourcesIn).map((one) => [one.resource.name, one]));
    }
    return sources;
  };
}
