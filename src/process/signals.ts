import { setImmediate as turn } from 'node:timers/promises';

const NAMES = ['SIGTERM', 'SIGINT'] as const;

export interface Signals {
  /** Resolves with the first signal. A second signal ends the process at once, as users expect. */
  readonly first: Promise<NodeJS.Signals>;
  /** Calls this for each SIGHUP, at once for those that came before. null: SIGHUP ends the process, as by default. */
  readonly onHangUp: (reload: (() => void) | null) => void;
  /** Stops handling signals. One that was already received is sent again. */
  release(): Promise<void>;
}

/** Starts to handle SIGTERM, SIGINT and SIGHUP. */
export function hearSignals(): Signals {
  let came: NodeJS.Signals | null = null;
  let resolve: (name: NodeJS.Signals) => void = () => undefined;
  const first = new Promise<NodeJS.Signals>((settle) => (resolve = settle));
  const hear = (name: NodeJS.Signals) => {
    came ??= name;
    resolve(name);
  };
  for (const name of NAMES) process.once(name, hear);
  let isHungUp = false;
  let hangUp = (): void => {
    isHungUp = true;
  };
  const hearHangUp = () => hangUp();
  process.on('SIGHUP', hearHangUp);
  const onHangUp: Signals['onHangUp'] = (reload) => {
    if (reload === null) process.off('SIGHUP', hearHangUp);
    else hangUp = reload;
    if (!isHungUp) return;
    if (reload === null) process.kill(process.pid, 'SIGHUP');
    else reload();
  };
  return {
    first,
    onHangUp,
    release: async () => {
      // Two turns of the event loop deliver a signal that came while the thread was busy.
      await turn();
      await turn();
      for (const name of NAMES) process.off(name, hear);
      onHangUp(null);
      if (came !== null) process.kill(process.pid, came);
    },
  };
}
