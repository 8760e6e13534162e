import type { FileStore } from '../store/files.ts';
import { filesOf, type Job } from './job.ts';

/**
 * Removes the files that killed or stopped attempts at a job left behind and that the job does not need.
 * `job` is the current record. It must be final, or null when the record was removed, because a running attempt would
 * lose its file.
 */
export async function removeLeftovers(files: FileStore, id: string, job: Job | null): Promise<void> {
  const needed = job ? filesOf(job) : [];
  for (const name of await files.names(id)) if (!needed.includes(name)) await files.remove(name);
}
