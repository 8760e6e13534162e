import type { FileStore } from '../store/files.ts';
import { filesOf, type Job } from './job.ts';

/**
 * Removes the files that attempts at a job have begun and that it does not need any more: attempts that were killed or stopped leave theirs.
 * `job` is final, or null when it is gone, as the record has it: an attempt that is on its way would lose its file.
 */
export async function removeLeftovers(files: FileStore, id: string, job: Job | null): Promise<void> {
  const needed = job ? filesOf(job) : [];
  for (const name of await files.names(id)) if (!needed.includes(name)) await files.remove(name);
}
