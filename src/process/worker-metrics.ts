import cluster, { type Worker } from 'node:cluster';

/** How long a worker waits for the metrics of the others, in milliseconds. One that hangs is left out. */
const PATIENCE_MS = 1000;

type Values = object[];

/** A worker sends `wanted`. The primary passes it on to all workers as `asked`, and their `values` back to the first. */
type Message = { readonly id: number } & (
  | { readonly metrics: 'wanted' }
  | { readonly metrics: 'asked'; readonly by: number; readonly workers: number }
  | { readonly metrics: 'values'; readonly by: number; readonly workers: number; readonly values: Values }
);

/** Runs in the primary: passes the messages of workers on. */
export function passMetrics(): void {
  cluster.on('message', (sender, message: unknown) => {
    if (!isMessage(message)) return;
    const connected = Object.values(cluster.workers ?? {}).filter((one) => one?.isConnected());
    if (message.metrics === 'wanted') {
      const asked = { metrics: 'asked', id: message.id, by: sender.id, workers: connected.length };
      for (const worker of connected) send(worker, asked);
    } else
      send(
        connected.find((one) => one?.id === message.by),
        message,
      );
  });
}

/** A worker that ends meanwhile gets nothing. Without a callback its channel would report that as an error of the primary. */
function send(worker: Worker | undefined, message: object): void {
  worker?.send(message, undefined, undefined, () => undefined);
}

/** Runs in a worker: returns a function that resolves with the metrics of all workers. `own` reads those of this one. */
export function gatherMetrics(own: () => Promise<Values>): () => Promise<readonly Values[]> {
  const collecting = new Map<number, (values: Values, workers: number) => void>();
  let last = 0;
  // A failed send needs no handling: the timeout below covers a primary that is gone.
  const send = (message: Message) => process.send?.(message, undefined, undefined, () => undefined);
  /** A worker that cannot read its metrics is left out, as one that hangs: whoever asks it is told why. */
  const answer = async (message: Message & { readonly metrics: 'asked' }): Promise<void> => {
    const values = await own().catch(() => []);
    send({ ...message, metrics: 'values', values });
  };
  process.on('message', (message: unknown) => {
    if (!isMessage(message)) return;
    if (message.metrics === 'asked') void answer(message);
    if (message.metrics === 'values') collecting.get(message.id)?.(message.values, message.workers);
  });
  return async () => {
    const id = ++last;
    const all: Values[] = [];
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS);
      collecting.set(id, (values, workers) => {
        if (all.push(values) < workers) return;
        clearTimeout(timer);
        resolve();
      });
      send({ metrics: 'wanted', id });
    });
    collecting.delete(id);
    return all.length > 0 ? all : [await own()]; // the primary is gone: this worker is about to stop
  };
}

function isMessage(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && 'metrics' in message;
}
