import cluster, { type Worker } from 'node:cluster';

/** How long a worker waits for the answers of the others, in milliseconds. One that hangs is left out. */
const PATIENCE_MS = 1000;

/**
 * A worker sends `wanted`. The primary passes it on to all workers as `asked`, and each `answered` back to the first. An
 * answer is missing where a worker had none.
 */
type Message = { readonly topic: string; readonly id: number; readonly question: unknown } & (
  | { readonly step: 'wanted' }
  | { readonly step: 'asked'; readonly by: number; readonly workers: number }
  | {
      readonly step: 'answered';
      readonly by: number;
      readonly workers: number;
      readonly answers: readonly unknown[];
    }
);

/** Runs in the primary: passes the messages of workers on. */
export function passQuestions(): void {
  cluster.on('message', (sender, message: unknown) => {
    if (!isMessage(message)) return;
    const connected = Object.values(cluster.workers ?? {}).filter((one) => one?.isConnected());
    if (message.step === 'wanted') {
      const asked = { ...message, step: 'asked', by: sender.id, workers: connected.length };
      for (const worker of connected) send(worker, asked);
    } else if (message.step === 'answered')
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

/**
 * Runs in a worker: returns a function that asks all workers, this one included, and resolves with their answers. `own`
 * answers for this one. Questions and answers are passed as JSON. `topic`: tells questions of several kinds apart.
 */
export function gatherAnswers<Question, Answer>(
  topic: string,
  own: (question: Question) => Promise<Answer>,
): (question: Question) => Promise<readonly Answer[]> {
  const collecting = new Map<number, (answers: readonly Answer[], workers: number) => void>();
  let last = 0;
  // A failed send needs no handling: the timeout below covers a primary that is gone.
  const send = (message: Message) => process.send?.(message, undefined, undefined, () => undefined);
  /** A worker that has no answer is left out, as one that hangs: whoever asks it is told why. */
  const answer = async (message: Message & { readonly step: 'asked' }): Promise<void> => {
    const answers = await own(message.question as Question).then(
      (one) => [one],
      () => [],
    );
    send({ ...message, step: 'answered', answers });
  };
  process.on('message', (message: unknown) => {
    if (!isMessage(message) || message.topic !== topic) return;
    if (message.step === 'asked') void answer(message);
    if (message.step === 'answered')
      collecting.get(message.id)?.(message.answers as readonly Answer[], message.workers);
  });
  return async (question) => {
    const id = ++last;
    const all: Answer[] = [];
    let heard = 0;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS);
      collecting.set(id, (answers, workers) => {
        all.push(...answers);
        if (++heard < workers) return;
        clearTimeout(timer);
        resolve();
      });
      send({ topic, step: 'wanted', id, question });
    });
    collecting.delete(id);
    return heard > 0 ? all : [await own(question)]; // the primary is gone: this worker is about to stop
  };
}

function isMessage(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && 'topic' in message;
}
