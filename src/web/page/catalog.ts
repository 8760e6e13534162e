/** The resources of the server. */
import { ask } from './api.ts';
import type { Resource } from './resource.ts';

export async function listResources(): Promise<readonly Resource[]> {
  const { body } = await ask<{ readonly resources: readonly Resource[] }>('/resources', {
    cache: 'no-store',
  });
  return body.resources;
}
