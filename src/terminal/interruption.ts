import { setMaxListeners } from 'node:events';

/** A signal that the first SIGTERM or SIGINT aborts. A second one ends the process at once. */
export function interruption(): AbortSignal {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal); // one for each read of a command, such as those of all columns of a file
  const names = ['SIGTERM', 'SIGINT'] as const;
  const hear = () => {
    for (const name of names) process.off(name, hear);
    abort.abort(new Error('interrupted'));
  };
  for (const name of names) process.on(name, hear);
  return abort.signal;
}
