import { startProcess } from '../process.ts';
import type { Subject } from './kind.ts';

/** Runs work with a process of its own of this subject, started for it: nothing that was measured before has grown its memory. */
export async function withFresh<T>(subject: Subject, work: (fresh: Subject) => Promise<T>): Promise<T> {
  const process = await startProcess(subject.program);
  try {
    return await work({ ...subject, process });
  } finally {
    await process.stop();
  }
}
