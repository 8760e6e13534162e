import { AppError } from '../base/errors.ts';
import { spanOf, type SpanBeginning, type SpanFacts } from '../base/span.ts';

/** What all spans of a collection say. */
export type TracedPlace = Readonly<Record<'db.system.name' | 'db.collection.name', string>>;

/** An operation of a store, as its spans show it. */
interface TracedOperation<Call extends readonly unknown[], Result> {
  readonly name: string;
  /** The signal of a call. A call that has none has no span. */
  readonly signalOf: (call: Call) => unknown;
  /** What its span says of a result. */
  readonly factsOf?: (result: Result) => SpanFacts;
}

/** Makes each call whose signal has a span a part of that. Other calls cost one look at a map. */
export function tracedWork<Call extends readonly unknown[], Result>(
  work: (...call: Call) => Promise<Result>,
  { name, signalOf, factsOf }: TracedOperation<Call, Result>,
  place: TracedPlace,
): (...call: Call) => Promise<Result> {
  const beginning: SpanBeginning = {
    name: `${name} ${place['db.collection.name']}`,
    kind: 'client',
    facts: { ...place, 'db.operation.name': name },
  };
  return async (...call) => {
    const signal = signalOf(call) as AbortSignal;
    const span = spanOf(signal)?.part(beginning);
    if (!span) return work(...call);
    try {
      const result = await work(...call);
      span.end(factsOf?.(result));
      return result;
    } catch (error) {
      span.end({}, error instanceof AppError ? error.code : signal.aborted ? 'aborted' : 'internal');
      throw error;
    }
  };
}
