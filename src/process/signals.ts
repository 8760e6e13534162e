import { setImmediate as turn } from 'node:timers/promises';

const NAMES = ['SIGTERM', 'SIGINT'] as const;

/** The signals that ask a server to stop. */
export interface Signals {
  /** Resolves with the first one. A second one ends the process at once, as users expect. */
  readonly first: Promise<NodeJS.Signals>;
  /** From here on a signal ends the process, or is somebody else's; so is one that was heard until now. */
  release(): Promise<void>;
}

/** Hears signals from here on. */
export function hearSignals(): Signals {
  let came: NodeJS.Signals | null = null;
  let resolve: (name: NodeJS.Signals) => void = () => undefined;
  const first = new Promise<NodeJS.Signals>((settle) => (resolve = settle));
  const hear = (name: NodeJS.Signals) => {
    came ??= name;
    resolve(name);
  };
  for (const name of NAMES) process.once(name, hear);
  return {
    first,
    release: async () => {
      // What came while the thread was busy is heard first: between two turns node looks for signals.
      await turn();
      await turn();
      for (const name of NAMES) process.off(name, hear);
      if (came !== null) process.kill(process.pid, came);
    },
  };
}
