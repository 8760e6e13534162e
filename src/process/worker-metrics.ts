import cluster from 'node:cluster';

/** How long the primary waits for its workers, in milliseconds. A worker that hangs is left out. */
const PATIENCE_MS = 1000;

type Values = object[];

/**
 * The messages of a collection. A worker sends `wanted`. The primary sends `asked` to every worker, collects
 * their `own` values, and returns them together as `all`.
 */
type Message =
  | { readonly metrics: 'wanted'; readonly id: number }
  | { readonly metrics: 'asked'; readonly id: number }
  | { readonly metrics: 'own'; readonly id: number; readonly values: Values }
  | { readonly metrics: 'all'; readonly id: number; readonly values: readonly Values[] };

/** Runs in the primary: collects the metrics of all workers for the worker that was asked for them. */
export function passMetrics(): void {
  const collecting = new Map<number, (values: Values) => void>();
  let last = 0;
  cluster.on('message', (asker, message: unknown) => {
    if (!isMessage(message)) return;
    if (message.metrics === 'own') collecting.get(message.id)?.(message.values);
    if (message.metrics !== 'wanted') return;
    const id = ++last;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected());
    const all: Values[] = [];
    const finish = () => {
      clearTimeout(timer);
      collecting.delete(id);
      if (asker.isConnected()) asker.send({ metrics: 'all', id: message.id, values: all } satisfies Message);
    };
    const timer = setTimeout(finish, PATIENCE_MS);
    collecting.set(id, (values) => {
      if (all.push(values) === workers.length) finish();
    });
    for (const worker of workers) worker?.send({ metrics: 'asked', id } satisfies Message);
  });
}

/**
 * Runs in a worker: returns a function that resolves with the metrics of all workers. `own` reads the metrics
 * of this worker, and also serves the requests of other workers.
 */
export function gatherMetrics(own: () => Promise<Values>): () => Promise<readonly Values[]> {
  const waiting = new Map<number, (all: readonly Values[]) => void>();
  let last = 0;
  // A failed send needs no handling: the timeout below covers a primary that is gone.
  const send = (message: Message) => process.send?.(message, undefined, undefined, () => undefined);
  process.on('message', (message: unknown) => {
    if (!isMessage(message)) return;
    if (message.metrics === 'asked')
      void own().then((values) => send({ metrics: 'own', id: message.id, values }));
    if (message.metrics === 'all') waiting.get(message.id)?.(message.values);
  });
  return async () => {
    const id = ++last;
    let timer: NodeJS.Timeout | undefined;
    const all = await new Promise<readonly Values[] | null>((resolve) => {
      waiting.set(id, resolve);
      timer = setTimeout(() => resolve(null), 2 * PATIENCE_MS);
      send({ metrics: 'wanted', id });
    });
    clearTimeout(timer);
    waiting.delete(id);
    return all ?? [await own()]; // the primary is gone: this worker is about to stop
  };
}

function isMessage(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && 'metrics' in message;
}
