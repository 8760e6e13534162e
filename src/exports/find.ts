import { AppError } from '../errors.ts';
import { quote } from '../input/query.ts';
import type { Input } from '../http/route.ts';
import type { Schema } from '../schema.ts';
import { EXPORT } from './export.ts';
import type { Job } from './job.ts';
import type { Jobs } from './jobs.ts';

/** The value of Retry-After for clients that wait for an export. Seconds. */
export const LOOK_AGAIN_SECONDS = 1;

/** The path parameter `{id}`. */
export const ID: Readonly<Record<'id', Schema>> = {
  id: { ...EXPORT.properties.id, examples: ['8f14e45fceea167a5a36dedd4bea2543'] },
};

/**
 * Finds the job that a request names. Throws AppError `not-found` when there is none, when it has expired, or
 * when clients have keys and the job belongs to another client.
 */
export async function find(jobs: Jobs, { request, client, parameters: { id = '' } }: Input): Promise<Job> {
  const job = await jobs.get(id, request.signal);
  if (job && (!client.hasKey || job.client === client.owner)) return job;
  throw noSuchExport(id);
}

export function noSuchExport(id: string): AppError {
  return new AppError('not-found', `No export has the id ${quote(id)}.`);
}
