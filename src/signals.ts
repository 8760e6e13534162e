const NAMES = ['SIGTERM', 'SIGINT'] as const;

/** The signals that ask a server to stop. */
export interface Signals {
  /** Resolves with the first one. A second one ends the process at once, as users expect. */
  readonly first: Promise<NodeJS.Signals>;
  /** From here on a signal ends the process, or is somebody else's. */
  unheard(): void;
}

/** Hears signals from here on. */
export function hearSignals(): Signals {
  let resolve: (name: NodeJS.Signals) => void = () => undefined;
  const first = new Promise<NodeJS.Signals>((settle) => (resolve = settle));
  for (const name of NAMES) process.once(name, resolve);
  return {
    first,
    unheard: () => {
      for (const name of NAMES) process.off(name, resolve);
    },
  };
}
