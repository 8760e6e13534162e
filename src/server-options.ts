import type { Serve } from './engine/edge.ts';
import type { OverloadProbe } from './access/overload.ts';
import type { Route } from './http/route.ts';
import type { Slots } from './store/slots.ts';
import type { Store } from './store/store.ts';
import type { MetricValues } from './telemetry/metrics.ts';

/** A server that listens. */
export interface Server {
  /** The URL it listens on: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly engine: string;
  readonly store: Store;
  /** The batches being read; 0 when no read is in progress. */
  readonly slots: Slots;
  /**
   * Stops in order. /readyz reports the stop for DRAIN_DELAY. Then the server accepts no new requests, running ones
   * finish or are cut after STREAM_GRACE, exports return to the queue, and the store closes.
   */
  close(): Promise<void>;
  /**
   * Looks for resources that came, changed or went, then reads API_KEYS_FILE again, as the server also does by itself.
   * Resolves with whether both are without faults.
   */
  reload(): Promise<boolean>;
}

export interface ServerOptions {
  /** How long a stream waits for a store that is unavailable. Milliseconds; 30 s by default. */
  readonly retryMs?: number;
  /**
   * Called once when this process can never use its store again. The process must then end at once, without closing
   * the server.
   */
  readonly onStoreLost?: (error: Error) => void;
  /**
   * How long an export stays reserved for a worker that has stopped renewing its lease. Milliseconds; 10 s by
   * default.
   */
  readonly leaseMs?: number;
  /** See EngineOptions. 1 s by default. */
  readonly quietMs?: number;
  /** See AnswerOptions in resources/changes/answer.ts. 15 s by default. */
  readonly heartbeatMs?: number;
  /** Listens on a port that other processes share in the same way. */
  readonly sharedPort?: boolean;
  /** What the overload guard measures. */
  readonly overloadProbe?: OverloadProbe;
  /** Wraps the store before any other code uses it. */
  readonly tapStore?: (store: Store) => Store;
  /** Wraps the application before the engine calls it. */
  readonly tap?: (serve: Serve, routes: () => readonly Route[]) => Serve;
  /** Combines the metric values of this process with those of its sibling processes. By default there are none. */
  readonly gatherMetrics?: (own: () => Promise<MetricValues>) => () => Promise<readonly MetricValues[]>;
}
