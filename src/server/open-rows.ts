import type { Config } from '../settings/config.ts';
import { Faults } from '../base/errors.ts';
import { ITEM_COLLECTION } from '../resources/item-collection.ts';
import { readDeclarations, type ResourceDeclaration } from '../resources/declarations.ts';
import { keptBy, locatedOf, locatedOwn, type LocatedDeclaration } from '../resources/locate.ts';
import { itemsOf } from '../resources/own.ts';
import type { OpenResourcesOptions } from '../resources/open.ts';
import { ServedResources } from '../resources/served.ts';
import { openStore } from './open-store.ts';
import type { Slots } from '../store/turns/slots.ts';
import type { CollectionEntry, Listing, Store } from '../store/store.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { timedStore } from '../telemetry/timed-store.ts';
import { usersOf, type Users } from '../users/scope.ts';
import { USERS } from '../users/row.ts';

interface StoreParts {
  readonly config: Config;
  readonly log: Logger;
  readonly slots: Slots;
  readonly metrics: Metrics;
  /** Whether reads become spans. */
  readonly isTraced: boolean;
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
  const { config, log, slots, metrics, isTraced, tapStore } = parts;
  const opened = await openStore(config, slots, log, { adopts: asksForItems(config) });
  return timedStore(tapStore ? tapStore(opened) : opened, metrics, isTraced);
}

/**
 * Fills the items with the bundled catalogue when that is asked for, or when this start makes the embedded store and no
 * resource is declared. A load that was interrupted is completed.
 */
export async function fillWithSample(store: Store, config: Config, log: Logger): Promise<void> {
  const { SAMPLE } = config;
  if (SAMPLE === 'off') return;
  if (SAMPLE === 'auto' && (store.name !== 'sqlite' || config.resources.length > 0 || config.declaresItems))
    return;
  const { collections, isNew = false } = SAMPLE === 'on' ? ANY : await store.list();
  if (!collections.every(isItems)) return;
  const { loadSample } = await import('../import/sample.ts');
  const started = performance.now();
  const items = await store.open(ITEM_COLLECTION);
  const rows = await loadSample(items, isNew).finally(() => items.close());
  if (rows > 0)
    log.info({ rows, ms: Math.round(performance.now() - started) }, 'loaded the bundled catalogue');
}

/** A store into which a load may begin. */
const ANY: Listing = { collections: [], isNew: true };

function isItems({ collection }: Pick<CollectionEntry, 'collection'>): boolean {
  return collection === ITEM_COLLECTION.collection;
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
  { streamsOf, slots }: Pick<OpenResourcesOptions, 'streamsOf' | 'slots'>,
  config: Config,
  log: Logger,
): Promise<ServedResources> {
  const items = locatedOwn(itemsOf(config.ID_TYPE), config.itemsMember);
  let areServed = false;
  const kept = async (): Promise<readonly LocatedDeclaration[]> => {
    const entries = await keptBy(store);
    areServed ||= servesItems(config, entries); // they stay once they are served
    const others = entries.flatMap((one) => (isItems(one) ? [] : (locatedOf(one) ?? [])));
    return areServed ? [items, ...others] : others;
  };
  // A name in a key must not open two things.
  const inKeys = config.needsKeys && servesUsers(store, config) ? API_USERS : undefined;
  const declared = () => declaredNow(config);
  return ServedResources.open({ store, streamsOf, slots, log, declared, kept, ...(inKeys && { inKeys }) });
}

/** Whether items are served: only where a setting asks, if resources are declared, or if the store has none or items. */
function servesItems(config: Config, kept: readonly CollectionEntry[]): boolean {
  if (asksForItems(config)) return true;
  if (config.resources.length > 0) return false;
  return kept.every(isItems) || kept.some((one) => isItems(one) && !one.isUnfilled);
}

/** What the settings declare now. Throws Faults. */
function declaredNow(config: Config): readonly ResourceDeclaration[] {
  const { EXPOSE, RESOURCES_FILE, MONGODB_URI, itemsMember } = config;
  const { resources, items, faults } = readDeclarations({ EXPOSE, RESOURCES_FILE, MONGODB_URI });
  const isSame = JSON.stringify(items) === JSON.stringify(itemsMember);
  const areFirst = resources.some(hasEditions) && !asksForEditions(config);
  const all = [...faults, ...(isSame ? [] : [OF_ITEMS]), ...(areFirst ? [OF_EDITIONS] : [])];
  if (all.length > 0) throw new Faults(all);
  return resources;
}

const OF_ITEMS = 'RESOURCES_FILE: what it has of items is read at the start only: start the server again';
const OF_EDITIONS =
  'RESOURCES_FILE: a server that started without editions makes none: start the server again';

/** Whether a setting asks for editions. */
export function asksForEditions({
  EDITIONS,
  itemsMember,
  resources,
}: Pick<Config, 'EDITIONS' | 'itemsMember' | 'resources'>): boolean {
  return EDITIONS !== undefined || itemsMember?.editions !== undefined || resources.some(hasEditions);
}

function hasEditions({ editions }: Pick<ResourceDeclaration, 'editions'>): boolean {
  return editions !== undefined;
}
