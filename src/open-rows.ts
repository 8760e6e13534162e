import { ScopeFaults } from './access/scope-faults.ts';
import { ConfigError, type Config } from './config.ts';
import { ITEM_COLLECTION } from './resources/item-collection.ts';
import { readDeclarations, type Declared } from './resources/declarations.ts';
import { openItems, ResourceFaults } from './resources/open.ts';
import { ServedResources } from './resources/served.ts';
import { openStore } from './store/open.ts';
import type { StreamReader } from './store/readers.ts';
import type { Slots } from './store/slots.ts';
import type { Collection, Store } from './store/store.ts';
import type { Logger } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';
import { timedStore } from './telemetry/timed-store.ts';

/** What the rows of a server are opened with. */
interface RowsParts {
  readonly config: Config;
  readonly log: Logger;
  readonly slots: Slots;
  readonly metrics: Metrics;
}

/** See ServerOptions. */
interface StoreHooks {
  readonly onStoreLost?: (error: Error) => void;
  readonly tapStore?: (store: Store) => Store;
}

/** Opens the store, whose operations the metrics then time. */
export async function openTimedStore(
  { config, log, slots, metrics }: RowsParts,
  { onStoreLost, tapStore }: StoreHooks,
): Promise<Store> {
  const own = config.resources.length === 0 || config.declaresItems || config.SAMPLE === 'on';
  const opened = await openStore(config, slots, log, {
    items: ITEM_COLLECTION,
    own,
    ...(onStoreLost && { onLost: onStoreLost }),
  });
  return timedStore(tapStore ? tapStore(opened) : opened, metrics);
}

/** Fills the items with the bundled catalogue when that is asked for. */
export async function fillWithSample(store: Store, config: Config, log: Logger): Promise<void> {
  const wanted = config.SAMPLE === 'on' || (config.SAMPLE === 'auto' && store.name === 'sqlite');
  if (!wanted) return;
  const { loadSample } = await import('./import/sample.ts');
  const started = performance.now();
  const rows = await loadSample(store.items);
  if (rows > 0)
    log.info({ rows, ms: Math.round(performance.now() - started) }, 'loaded the bundled catalogue');
}

/** Opens the resources that the settings and the store declare, and the items. Rejects with ConfigError for faults. */
export async function openDeclared(
  store: Store,
  streamsOf: (rows: Collection) => StreamReader,
  config: Config,
  log: Logger,
): Promise<ServedResources> {
  const always = [openItems(store.items, store, streamsOf, config.ID_TYPE)];
  const declared = () => declaredNow(config);
  return orConfigError(ServedResources.open({ store, streamsOf, log, declared, always }));
}

/** What the settings declare now. Throws ResourceFaults. */
function declaredNow({ EXPOSE, RESOURCES_FILE, MONGODB_URI, declaresItems }: Config): readonly Declared[] {
  const { resources, items, faults } = readDeclarations({ EXPOSE, RESOURCES_FILE, MONGODB_URI });
  const ofItems = 'RESOURCES_FILE: whether it has items is read at the start only: start the server again';
  const all = items === declaresItems ? faults : [...faults, ofItems];
  if (all.length > 0) throw new ResourceFaults(all);
  return resources;
}

/** Faults that the operator has to mend in the settings are those of a ConfigError. */
export async function orConfigError<T>(opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    const isOfSettings = error instanceof ResourceFaults || error instanceof ScopeFaults;
    throw isOfSettings ? new ConfigError(error.faults) : error;
  }
}
