import { readFileSync, readlinkSync } from 'node:fs';

/** A process, such that another one on the same machine can tell whether it still runs. */
export interface Holder {
  readonly pid: number;
  /** The boot of the machine and the namespace in which the process has its number. Empty where the system names none. */
  readonly space: string;
  /** When it began, in ticks since the boot: another process may have its number by now. Empty: unknown. */
  readonly began: string;
}

export function thisProcess(): Holder {
  return { pid: process.pid, space: space(), began: beginOf(process.pid) };
}

/** Whether a process runs. Null: it cannot be told from here, as for one of another container. */
export function isRunning({ pid, space: own, began }: Holder): boolean | null {
  if (own !== space()) return null;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false; // EPERM: it is of another account
  }
  const now = beginOf(pid);
  return now === '' || began === '' || now === began;
}

function space(): string {
  return process.platform === 'linux'
    ? textOf(() => `${bootId()} ${readlinkSync('/proc/self/ns/pid')}`)
    : process.platform;
}

/** A name for this start of the system: what it wrote before may be lost in part. Empty where the system has none. */
export function currentBoot(): string {
  return textOf(bootId);
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** The fields behind the name, which may have spaces and brackets, begin with the third (proc_pid_stat(5)). */
function beginOf(pid: number): string {
  const stat = textOf(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

function textOf(read: () => string): string {
  try {
    return read();
  } catch {
    return ''; // unknown: the caller then goes by time
  }
}
