import type { Config } from './config.ts';
import { AppError, Faults } from './errors.ts';
import { ITEM_COLLECTION } from './resources/item-collection.ts';
import { readDeclarations, type Declared } from './resources/declarations.ts';
import { openItems } from './resources/open.ts';
import { ServedResources } from './resources/served.ts';
import { KEY } from './store/bookmark.ts';
import { openStore } from './store/open.ts';
import type { StreamReader } from './store/readers.ts';
import type { Slots } from './store/slots.ts';
import type { Collection, Store } from './store/store.ts';
import type { Logger } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';
import { timedStore } from './telemetry/timed-store.ts';
import { usersOf, type Users } from './users/part.ts';
import { USERS } from './users/row.ts';

interface StoreParts {
  readonly config: Config;
  readonly log: Logger;
  readonly slots: Slots;
  readonly metrics: Metrics;
  readonly tapStore?: (store: Store) => Store;
}

/** Whether the settings ask for the items of sluice by name. */
export function asksForItems({ declaresItems, SAMPLE }: Pick<Config, 'declaresItems' | 'SAMPLE'>): boolean {
  return declaresItems || SAMPLE === 'on';
}

/** Whether the store is the server's own: no setting names collections of others, or one asks for the items, too. */
export function isOwn(config: Pick<Config, 'resources' | 'declaresItems' | 'SAMPLE'>): boolean {
  return config.resources.length === 0 || asksForItems(config);
}

/** Opens the store, whose operations the metrics then time. */
export async function openTimedStore(parts: StoreParts): Promise<Store> {
  const { config, log, slots, metrics, tapStore } = parts;
  const opened = await openStore(config, slots, log, {
    items: ITEM_COLLECTION,
    own: isOwn(config),
    asksForItems: asksForItems(config),
  });
  return timedStore(tapStore ? tapStore(opened) : opened, metrics);
}

/**
 * Fills the items with the bundled catalogue when that is asked for, or when this start makes the embedded store and no
 * resource is declared. A load that was interrupted is completed.
 */
export async function fillWithSample(store: Store, config: Config, log: Logger): Promise<void> {
  const { SAMPLE, resources, declaresItems } = config;
  const isDeclared = resources.length > 0 || declaresItems || (await store.declared()).length > 0;
  if (SAMPLE === 'off' || (SAMPLE === 'auto' && (store.name !== 'sqlite' || isDeclared))) return;
  const { loadSample } = await import('./import/sample.ts');
  const started = performance.now();
  const rows = await loadSample(store.items, SAMPLE === 'on' || store.isNew);
  if (rows > 0)
    log.info({ rows, ms: Math.round(performance.now() - started) }, 'loaded the bundled catalogue');
}

/** The users; null where no setting asks for them: beside collections of others, unless MONGODB_PREFIX names a place for them. */
export async function openUsers(store: Store, config: Config): Promise<Users | null> {
  return servesUsers(store, config) ? usersOf(await store.records(USERS)) : null;
}

function servesUsers(store: Store, config: Config): boolean {
  return store.name === 'sqlite' || isOwn(config) || config.MONGODB_PREFIX !== undefined;
}

const API_USERS = new Map([[USERS.name, 'the users of /api/users']]);

/** Opens the resources that settings and store declare, and the items where they are served. Rejects with Faults. */
export async function openDeclared(
  store: Store,
  streamsOf: (rows: Collection) => StreamReader,
  config: Config,
  log: Logger,
): Promise<ServedResources> {
  const items = openItems(store.items, store, streamsOf, config.ID_TYPE);
  const declared = () => declaredNow(config);
  const itemsNow = async () => ((await servesItems(store, config)) ? items : null);
  // A name in a key must not open two things.
  const inKeys = config.needsKeys && servesUsers(store, config) ? API_USERS : undefined;
  return ServedResources.open({
    store,
    streamsOf,
    log,
    declared,
    items: itemsNow,
    ...(inKeys && { inKeys }),
  });
}

/** Whether items are served: only where a setting asks, if resources are declared, or if the store has none or items. */
async function servesItems(store: Store, config: Config): Promise<boolean> {
  if (config.resources.length > 0) return asksForItems(config);
  return asksForItems(config) || (await store.declared()).length === 0 || hasRows(store);
}

/** Whether the embedded store has items, or an import loads some. */
async function hasRows({ items }: Store): Promise<boolean> {
  try {
    const limit = AbortSignal.timeout(LOOK_MS);
    return (await items.count({ sort: KEY, direction: 1 }, 'estimated', limit)).rows > 0;
  } catch (error) {
    if (error instanceof AppError) return true;
    throw error;
  }
}

/** How long a look waits for the number of items. Milliseconds. */
const LOOK_MS = 10_000;

/** What the settings declare now. Throws Faults. */
function declaredNow({ EXPOSE, RESOURCES_FILE, MONGODB_URI, declaresItems }: Config): readonly Declared[] {
  const { resources, items, faults } = readDeclarations({ EXPOSE, RESOURCES_FILE, MONGODB_URI });
  const ofItems = 'RESOURCES_FILE: whether it has items is read at the start only: start the server again';
  const all = items === declaresItems ? faults : [...faults, ofItems];
  if (all.length > 0) throw new Faults(all);
  return resources;
}
