/** What a span says beside its name. Never a key, a token, or a value of a query or a row. */
export type SpanFacts = Readonly<Record<string, string | number>>;

/** `server`: the answer to a request. `client`: a request to a store. `internal`: what the server does by itself. */
export type SpanKind = 'server' | 'client' | 'internal';

export interface SpanBeginning {
  readonly name: string;
  readonly kind: SpanKind;
  readonly facts: SpanFacts;
}

/** One thing that the server does, from its beginning to its end, as a sampled trace shows it. */
export interface Span {
  /** Names it for other processes (W3C Trace Context). */
  readonly traceparent: string;
  /** Begins a part of it. */
  part(beginning: SpanBeginning): Span;
  /** Ends it, once. `fault`: the kind of what went wrong, a word of few. */
  end(facts?: SpanFacts, fault?: string): void;
}

export interface Tracer {
  /** Begins a span in the trace of `parent`, a traceparent. Null: it is not sampled. `beginning` may not be called then. */
  begin(parent: string | undefined, beginning: () => SpanBeginning): Span | null;
  /** Sends what has ended, as far as that is possible within a few seconds. */
  close(): Promise<void>;
}

/** The spans of what is done under a signal. */
const spans = new WeakMap<AbortSignal, Span>();

/**
 * Makes all reads with this signal parts of the span. A signal already goes with a request through every layer down to the
 * store, and AsyncLocalStorage would make each promise of each request slower (Node 20).
 */
export function bindSpan(signal: AbortSignal, span: Span): void {
  spans.set(signal, span);
}

export function spanOf(signal: AbortSignal): Span | undefined {
  return spans.get(signal);
}

/** Gives a signal that is made for another one its span. */
export function passSpan(from: AbortSignal, to: AbortSignal): void {
  const span = spans.get(from);
  if (span) spans.set(to, span);
}
