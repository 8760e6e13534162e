import { startProcess } from '../process.ts';
import type { Subject } from './kind.ts';

/** Calls `work` with a new process of this subject. No earlier measurement has grown its memory. */
export async function withFresh<T>(subject: Subject, work: (fresh: Subject) => Promise<T>): Promise<T> {
  const process = await startProcess(subject.program);
  try {
    return await work({ ...subject, process });
  } finally {
    await process.stop();
  }
}
