import type { Resource } from '../resources/resource.ts';
import type { ChainReader, RowStore } from '../store/store.ts';
import { itemsSource } from './items-source.ts';
import { resourceSource } from './resource-source.ts';
import { ITEMS } from './job.ts';
import type { ExportSources } from './source.ts';

/** What can be exported: items, and each of these resources. `openStreams`: reads a part of the items. */
export function exportSources(
  items: RowStore,
  streams: ChainReader,
  resources: readonly { readonly resource: Resource }[] = [],
  openStreams: (rows: RowStore) => ChainReader = (rows) => rows,
): ExportSources {
  return new Map([
    [ITEMS, itemsSource(items, streams, openStreams)],
    ...resources.map(({ resource }) => [resource.name, resourceSource(resource)] as const),
  ]);
}
