import type { Compression } from '../pull/proved-rows.ts';
import type { PageQuery } from './queries.ts';

/** A condition of --find: a quantile of the latencies of pages that must stay below a limit in milliseconds. */
export interface Condition {
  readonly quantile: 'p50' | 'p90' | 'p99' | 'p999' | 'max';
  readonly belowMs: number;
  /** As it was given. */
  readonly text: string;
}

/** The parsed command line of `sluice load`. */
export interface LoadCommand {
  readonly url: URL;
  /** The words of the command line, without the path of the key. */
  readonly words: readonly string[];
  /** Pages per second, `max` for a closed model, or null for no pages. With `find`, the rate to begin with. */
  readonly pages: number | 'max' | null;
  readonly connections: number;
  /** Empty: the default mix. */
  readonly queries: readonly PageQuery[];
  /** The content coding of pages. null: br, gzip and none by turns. */
  readonly pageCompression: Compression | null;
  readonly pullers: number;
  readonly slow: { readonly readers: number; readonly bytesPerSecond: number } | null;
  readonly stalled: number;
  readonly cutsPerMinute: number;
  /** Paths of streams. Empty: the resource with the most rows. */
  readonly streams: readonly string[];
  readonly format: string;
  readonly compression: Compression;
  readonly followers: number;
  /** The path of what is followed. null: the first resource that has changes. */
  readonly follow: string | null;
  /** The path of users, or the URL of those of another server on the same database. */
  readonly write: string | null;
  /** The key for a `write` to another server. */
  readonly writeKeyFile: string | null;
  readonly forSeconds: number;
  readonly rampSeconds: number;
  readonly find: Condition | null;
  readonly expectRefusals: boolean;
  /** Whether pages and streams begin traces. */
  readonly trace: boolean;
  readonly keyFile: string | null;
  /** The URL of the metrics, where the tested URL does not have them. */
  readonly metrics: URL | null;
  /** The key for `metrics`. */
  readonly metricsKeyFile: string | null;
  /** Where the result is written as JSON. `-`: standard output. */
  readonly json: string | null;
  /** Where the report is written as an HTML page. */
  readonly report: string | null;
  /** The JSON result of an earlier run that this one is compared with. */
  readonly compare: string | null;
}
